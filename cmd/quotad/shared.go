package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/events"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/plans/sweep"
	"quotad/internal/postgres"
	"quotad/internal/quota/upkeep"
)

// A sharedSetting has one value for all nodes, which is stored in the database. The first node that starts
// stores its value. Nodes with different values would undo each other's work: the node with the shortest id
// retention would remove ids that other nodes still need.
type sharedSetting struct {
	name  string
	told  bool   // a flag or variable sets the value on this node
	value string // the value that was set, or the default, in canonical form
	// take parses a value, stores it in this node's settings, and returns its canonical form.
	take func(text string) (string, error)
}

// Bounds of the billing settings.
const (
	maxCloseDelay     = time.Hour // more would only delay invoices
	maxCorrectionTime = 30 * 24 * time.Hour
)

// shared returns the settings that all nodes share. Their fields are nil until they are set on this node or
// agree sets the value in force.
func (s *settings) shared() []sharedSetting {
	return []sharedSetting{
		sharedTime("anonymous-ttl", &s.AnonymousTTL, 30*24*time.Hour, sweep.MinAnonymousTTL, sweep.MaxAnonymousTTL),
		sharedTime("audit-retention", &s.AuditRetention, 2*365*24*time.Hour, sweep.MinAuditRetention, sweep.MaxAuditRetention),
		sharedTime("close-delay", &s.CloseDelay, 10*time.Second, 0, maxCloseDelay),
		sharedTime("correction-time", &s.CorrectionTime, time.Hour, 0, maxCorrectionTime),
		sharedText("default-plan", &s.DefaultPlan, "", checkPlan),
		sharedTime("event-retention", &s.EventRetention, 35*24*time.Hour, events.MinRetention, events.MaxRetention),
		sharedTime("id-retention", &s.IDRetention, 35*24*time.Hour, upkeep.MinIDRetention, upkeep.MaxIDRetention),
	}
}

func sharedTime(name string, field **time.Duration, usual, least, most time.Duration) sharedSetting {
	value := usual
	if *field != nil {
		value = **field
	}
	return sharedSetting{name, *field != nil, writtenTime(value), func(text string) (string, error) {
		d, err := parseTime(text)
		if err != nil {
			return "", &settingError{name, err}
		}
		if d < least || d > most {
			return "", badSetting(name, "must be between %s and %s, not %s", writtenTime(least), writtenTime(most), text)
		}
		*field = &d
		return writtenTime(d), nil
	}}
}

func sharedText(name string, field **string, usual string, check func(string) error) sharedSetting {
	value := usual
	if *field != nil {
		value = **field
	}
	return sharedSetting{name, *field != nil, value, func(text string) (string, error) {
		if err := check(text); err != nil {
			return "", &settingError{name, err}
		}
		*field = &text
		return text, nil
	}}
}

func checkPlan(key string) error {
	if key != "" && !plans.ValidKey(key) {
		return errors.New("the plan's key " + plans.KeyRule)
	}
	return nil
}

// writtenTime formats a duration without trailing zero units: 840h instead of 840h0m0s.
func writtenTime(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// agree sets this node's shared settings to the values in force. If the database has no value yet, agree stores
// this node's value. It returns an error if a setting was set on this node to another value than the value in
// force.
func (s *settings) agree(ctx context.Context, store *store.Store) error {
	all := s.shared()
	var proposed []plans.Setting
	for _, one := range all {
		proposed = append(proposed, plans.Setting{Name: one.name, Value: one.value})
	}
	inForce, err := store.ProposeSettings(ctx, proposed)
	if err != nil {
		return fmt.Errorf("read the settings that all nodes share: %w", err)
	}
	for _, one := range all {
		value := inForce[slices.IndexFunc(inForce, func(f plans.Setting) bool { return f.Name == one.name })].Value
		if one.told && one.value != value {
			return badSetting(one.name, "this node is told %s, and all nodes on %s have %s. Leave --%s (%s) out to take that; or stop every quotad there and change it for all:\n  quotad settings set %s %s%s",
				orNone(one.value), s.place(), orNone(value), one.name, envOf(one.name), one.name, cmp.Or(one.value, "''"), s.placeFlag())
		}
		if _, err := one.take(value); err != nil {
			return fmt.Errorf("the settings that all nodes share: %w", err)
		}
	}
	return nil
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

type listSettings struct{ common }

func (l *listSettings) run(ctx context.Context, p *program) error {
	return l.withStore(ctx, p, func(ctx context.Context, store *store.Store) error {
		written, err := store.Settings(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.stderr, "The settings in %s:\n", l.place())
		table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "SETTING\tVALUE")
		for _, one := range new(settings).shared() {
			value := one.value
			if i := slices.IndexFunc(written, func(w plans.Setting) bool { return w.Name == one.name }); i >= 0 {
				value = written[i].Value
			}
			fmt.Fprintf(table, "%s\t%s\n", one.name, orNone(value))
		}
		return table.Flush()
	})
}

type setSetting struct {
	common
	Name  string `arg:"" argument:"" help:"Its name, as settings list shows it."`
	Value string `arg:"" argument:"" help:"Its value from now on; '' for none."`
}

// run changes the setting only while no quotad serves on the database, because nodes read shared settings only
// when they start.
func (c *setSetting) run(ctx context.Context, p *program) error {
	all := new(settings).shared()
	i := slices.IndexFunc(all, func(one sharedSetting) bool { return one.name == c.Name })
	if i < 0 {
		return &settingError{err: fmt.Errorf("there is no setting %q that all nodes share: `quotad settings list` shows them", c.Name)}
	}
	value, err := all[i].take(c.Value)
	if err != nil {
		return err
	}
	return c.withPool(ctx, p, func(ctx context.Context, pool *pgxpool.Pool) error {
		release, err := postgres.ClaimSchema(ctx, pool.Config().ConnString())
		if err != nil {
			return fmt.Errorf("set %s: %w", c.Name, err)
		}
		defer release()
		if err := store.New(pool, store.Options{}).SetSetting(ctx, plans.Setting{Name: c.Name, Value: value}); err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "%s is %s from now on in %s\n", c.Name, orNone(value), c.place())
		return nil
	})
}
