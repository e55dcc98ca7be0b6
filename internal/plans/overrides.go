package plans

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota"
)

// OverrideInput is an override as an admin writes it
// (PUT /v1/customers/{key}/overrides/{limit}).
type OverrideInput struct {
	Limit     int64      // 0 to quota.MaxNumber units
	Burst     *int64     // of a token bucket; nil: as Limit, whatever the plan's is
	ExpiresAt *time.Time // by the customer's clock; nil: never
}

// Override is what a customer has instead of the numbers of one of its plan's limits.
type Override struct {
	Name string // of the limit
	OverrideInput
	// TestClock is the key of the clock that its customer lives by; empty: PostgreSQL's time.
	TestClock string
	// InForce is false when it has no effect: it has expired, or the plan version in
	// force does not have the limit, or has it in a shape that these numbers do not fit.
	InForce bool
}

// storedOverride is an override as customers' hits need it. It counts as long as its row
// is there; ExpiresAt, µs, is looked at for customers on a test clock only, see endOverrides.
type storedOverride struct {
	Limit     int64  `json:"limit"`
	Burst     *int64 `json:"burst"`
	ExpiresAt *int64 `json:"expires_at"`
}

func (o *storedOverride) expired(now int64) bool { return o.ExpiresAt != nil && *o.ExpiresAt <= now }

// over compiles a limit of a plan with the override's numbers in place of its own. The
// fields of the errors are those of the override. There must be such a limit.
func (o *storedOverride) over(p *Plan, name string) (*quota.Limit, quota.FieldErrors) {
	spec := p.limit(name).Spec
	spec.Limit, spec.Burst = o.Limit, o.Burst
	compiled, bad := quota.Compile(spec)
	for i := range bad {
		if field := bad[i].Field; field != "limit" && field != "burst" {
			bad[i] = quota.FieldError{Field: "limit", Detail: "does not fit the plan's " + field + ": " + bad[i].Detail}
		}
	}
	return compiled, bad
}

// limit is the plan's limit of a name, or nil.
func (p *Plan) limit(name string) *Limit {
	for i := range p.Limits {
		if p.Limits[i].Name == name {
			return &p.Limits[i]
		}
	}
	return nil
}

// The snapshot of a statement does not see what it writes itself.
const putOverride = `
	INSERT INTO overrides (customer_id, limit_name, "limit", burst, expires_at, change) VALUES ($1, $2, $3, $4, $5, $6)
	ON CONFLICT (customer_id, limit_name) DO UPDATE SET "limit" = excluded."limit", burst = excluded.burst,
		expires_at = excluded.expires_at, change = excluded.change
	RETURNING NOT EXISTS (SELECT FROM overrides WHERE customer_id = $1 AND limit_name = $2)`

// PutOverride gives a customer other numbers for a limit that the plan version in force
// for it has, or replaces them; created says which. They are checked as that version's
// own are. It changes the customer's entity tag.
//
// Errors: ErrUnknownCustomer, ErrArchived, ErrUnknownLimit, and quota.FieldErrors about
// limit, burst and expires_at.
func (s *Store) PutOverride(ctx context.Context, customer, limit string, in OverrideInput) (o *Override, created bool, err error) {
	err = s.changeCustomer(ctx, customer, func(ctx context.Context, w *writing, c *Customer) error {
		stored, err := w.checkOverride(ctx, c, limit, in)
		if err != nil {
			return err
		}
		created, err = one(ctx, w, ErrUnknownCustomer, pgx.RowTo[bool], putOverride,
			c.ID, limit, stored.Limit, stored.Burst, stored.ExpiresAt, w.number)
		o = stored.show(limit, true, c)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return o, created, nil
}

// checkOverride holds an override to the plan version in force and to the customer's clock.
func (w *writing) checkOverride(ctx context.Context, c *Customer, limit string, in OverrideInput) (o storedOverride, err error) {
	plan, err := one(ctx, w, ErrUnknownVersion, scanPlan, getPlanVersion, c.Plan, c.EffectiveVersion)
	if err != nil {
		return o, err
	}
	if plan.limit(limit) == nil {
		return o, unknownLimit(plan, limit)
	}
	o = storedOverride{Limit: in.Limit, Burst: in.Burst}
	var bad faults
	_, bad.list = o.over(plan, limit)
	if in.ExpiresAt != nil {
		now, at := w.now.UnixMicro(), in.ExpiresAt.UnixMicro()
		if c.Clock != nil {
			now = c.Clock.Now
		}
		if o.ExpiresAt = &at; at <= now || in.ExpiresAt.After(lastInstant) {
			bad.add("expires_at", "must be in the future: the customer's clock shows %s", shownInstant(now).Format(time.RFC3339Nano))
		}
	}
	return o, bad.err()
}

// maxNamed bounds how many of a plan's limits an error names.
const maxNamed = 10

// unknownLimit says which limits there are.
func unknownLimit(p *Plan, name string) error {
	there := "no limits"
	if len(p.Limits) > 0 {
		var names []string
		for i := range p.Limits[:min(len(p.Limits), maxNamed)] {
			names = append(names, Shorten(p.Limits[i].Name))
		}
		if there = strings.Join(names, ", "); len(p.Limits) > maxNamed {
			there += fmt.Sprintf(" and %d more", len(p.Limits)-maxNamed)
		}
	}
	return fmt.Errorf("%w: version %d of plan %s, which is in force for it, has %s. Override one of these, or write a version of the plan that has %s",
		ErrUnknownLimit, p.Version, Shorten(p.Key), there, Shorten(name))
}

const deleteOverride = `DELETE FROM overrides WHERE customer_id = $1 AND limit_name = $2`

// DeleteOverride gives a limit its plan's numbers back. It changes the customer's entity
// tag. Errors: ErrUnknownCustomer, ErrArchived, ErrUnknownOverride.
func (s *Store) DeleteOverride(ctx context.Context, customer, limit string) error {
	return s.changeCustomer(ctx, customer, func(ctx context.Context, w *writing, c *Customer) error {
		done, err := w.Exec(ctx, deleteOverride, c.ID, limit)
		if err == nil && done.RowsAffected() == 0 {
			err = ErrUnknownOverride
		}
		return err
	})
}

const touchCustomer = `UPDATE customers SET change = $2 WHERE id = $1`

// changeCustomer runs do in a write about a customer that may be written, and gives the
// customer the change's number: what its hits are judged by becomes newer by it.
func (s *Store) changeCustomer(ctx context.Context, key string, do func(context.Context, *writing, *Customer) error) error {
	if !ValidCustomerKey(key) {
		return ErrUnknownCustomer
	}
	return s.write(ctx, kindCustomer, key, func(ctx context.Context, w *writing) error {
		c, err := one(ctx, w, ErrUnknownCustomer, scanCustomer, getCustomer, key)
		if err == nil && c.ArchivedAt != nil {
			err = ErrArchived
		}
		if err == nil {
			err = do(ctx, w, c)
		}
		if err == nil {
			_, err = w.Exec(ctx, touchCustomer, c.ID, w.number)
		}
		return err
	})
}

const listOverrides = `
	SELECT o.limit_name, o."limit", o.burst, o.expires_at,
		coalesce(t.now, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
	FROM overrides o JOIN customers c ON c.id = o.customer_id LEFT JOIN test_clocks t ON t.id = c.test_clock_id
	WHERE o.customer_id = $1 AND o.limit_name > $2 ORDER BY o.limit_name LIMIT $3`

// ListOverrides returns a customer's overrides in the order of the limits' names, those
// without effect too. ErrUnknownCustomer when there is no such customer.
func (s *Store) ListOverrides(ctx context.Context, customer string, page Page) (*List[*Override], error) {
	c, err := s.GetCustomer(ctx, customer)
	if err != nil {
		return nil, err
	}
	kind := "override/" + customer
	limit, after, err := page.open(kind, ValidKey)
	if err != nil {
		return nil, err
	}
	plan, err := s.GetPlanVersion(ctx, c.Plan, c.EffectiveVersion)
	if err != nil {
		return nil, err
	}
	found, err := list(ctx, s, func(row pgx.CollectableRow) (*Override, error) {
		return scanOverride(row, plan, c)
	}, listOverrides, limit, c.ID, after)
	if err != nil {
		return nil, err
	}
	return paged(found, limit, kind, func(o *Override) string { return o.Name }), nil
}

// scanOverride reads a customer's row and says what it means on a plan version.
func scanOverride(row pgx.CollectableRow, p *Plan, c *Customer) (*Override, error) {
	var o storedOverride
	var name string
	var now int64
	if err := row.Scan(&name, &o.Limit, &o.Burst, &o.ExpiresAt, &now); err != nil {
		return nil, err
	}
	inForce := p.limit(name) != nil && !o.expired(now)
	if inForce {
		_, bad := o.over(p, name)
		inForce = len(bad) == 0
	}
	return o.show(name, inForce, c), nil
}

func (o *storedOverride) show(name string, inForce bool, c *Customer) *Override {
	shown := &Override{Name: name, OverrideInput: OverrideInput{Limit: o.Limit, Burst: o.Burst}, InForce: inForce}
	if o.ExpiresAt != nil {
		at := shownInstant(*o.ExpiresAt)
		shown.ExpiresAt = &at
	}
	if c.Clock != nil {
		shown.TestClock = c.Clock.Key
	}
	return shown
}

// shownInstant is µs since the Unix epoch as people are told of them.
func shownInstant(us int64) time.Time { return time.UnixMicro(us).UTC() }
