package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
)

type createKey struct {
	common
	Name      string  `argument:"" required:"" placeholder:"TEXT" help:"What the key is for."`
	Scope     string  `argument:"" required:"" placeholder:"admin|support|backend|read" enum:"admin,support,backend,read" help:"What it may do: backend hits and reads quotas; read does every GET of a customer, plan or meter; support does that and writes overrides; admin does everything."`
	ExpiresAt *string `argument:"" placeholder:"TIME" help:"When it stops working, such as 2026-12-31T00:00:00Z. Default: never."`
}

// run prints only the secret to stdout, and everything else to stderr. A shell can therefore redirect the secret
// to a file or a program without showing it on the screen.
func (k *createKey) run(ctx context.Context, p *program) error {
	var expires *time.Time
	if k.ExpiresAt != nil {
		us, err := calendar.ParseInstant(*k.ExpiresAt)
		if err != nil {
			return badSetting("expires-at", "must be an RFC 3339 time such as 2026-12-31T00:00:00Z, in UTC before the year 10000")
		}
		at := time.UnixMicro(us)
		expires = &at
	}
	return k.withStore(ctx, p, func(ctx context.Context, store *store.Store) error {
		key, secret, err := store.CreateKey(ctx, k.Name, plans.Scope(k.Scope), expires)
		if fields, ok := errors.AsType[model.FieldErrors](err); ok {
			return badSetting(strings.ReplaceAll(fields[0].Field, "_", "-"), "%s", fields[0].Detail)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(p.stderr, "Made the key %s of scope %s in %s. Its secret, shown only this once:\n", key.ID, key.Scope, k.place())
		_, err = fmt.Fprintln(p.stdout, secret)
		return err
	})
}

type listKeys struct{ common }

func (k *listKeys) run(ctx context.Context, p *program) error {
	return k.withStore(ctx, p, func(ctx context.Context, store *store.Store) error {
		fmt.Fprintf(p.stderr, "The keys in %s:\n", k.place())
		table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tSCOPE\tCREATED\tEXPIRES\tUSED\tNAME")
		page := plans.Page{Limit: plans.MaxPage}
		for {
			keys, err := store.ListKeys(ctx, page)
			if err != nil {
				return err
			}
			for _, key := range keys.Items {
				expires := "never"
				if key.ExpiresAt != nil {
					expires = shown(*key.ExpiresAt)
				}
				used := "never"
				if key.UsedOn != nil {
					used = key.UsedOn.Format(time.DateOnly)
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", key.ID, key.Scope, shown(key.CreatedAt), expires, used, key.Name)
			}
			if keys.Next == "" {
				return table.Flush()
			}
			page.Cursor = keys.Next
		}
	})
}

type revokeKey struct {
	common
	ID string `arg:"" argument:"" help:"The key's id, as keys list shows it."`
}

func (k *revokeKey) run(ctx context.Context, p *program) error {
	return k.withStore(ctx, p, func(ctx context.Context, store *store.Store) error {
		err := store.RevokeKey(ctx, k.ID)
		if errors.Is(err, plans.ErrUnknownKey) {
			return fmt.Errorf("there is no key %q in %s: `quotad keys list` shows them", k.ID, k.place())
		}
		if err == nil {
			fmt.Fprintf(p.stdout, "revoked %s in %s\n", k.ID, k.place())
		}
		return err
	})
}
