package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quotad/client"
	"quotad/internal/calendar"
	"quotad/internal/events"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// customerColumns lists the columns that scanCustomer reads from the tables of customerNow. The last
// column is the plan version in force, which is the pinned version. Without a pin, it is the latest
// version when the customer joined the plan, or a later version that was written for all customers.
const customerColumns = `
	c.id, c.key, c.name, p.key, f.pinned_version, c.timezone, c.billing_anchor, c.metadata,
	c.change, c.created_at, c.archived_at, c.erased_at, c.features, c.anonymous, c.suspended_at, c.suspended_reason,
	t.key, t.now, c.former_periods, c.cuts, w.due, q.key, ` + nextVersion + `, s.limits_at,
	coalesce(f.pinned_version, greatest(f.joined_version, (
		SELECT max(v.version) FROM plan_versions v WHERE v.plan_id = p.id AND v.apply_to = 'all')))`

func scanCustomer(row pgx.CollectableRow) (*plans.Customer, error) {
	c := new(plans.Customer)
	var features, former []byte
	var now *int64
	var suspended *time.Time
	var reason string
	var next *string
	var nextVersion *int
	var nextAt *int64
	err := row.Scan(&c.ID, &c.Key, &c.Name, &c.Plan, &c.PlanVersion, &c.Timezone, &c.BillingAnchor, &c.Metadata,
		&c.Change, &c.CreatedAt, &c.ArchivedAt, &c.ErasedAt, &features, &c.Anonymous, &suspended, &reason,
		&c.TestClock, &now, &former, &c.Cuts, &c.Due, &next, &nextVersion, &nextAt, &c.EffectiveVersion)
	if err != nil {
		return nil, err
	}
	if c.TestClock != nil && now != nil {
		c.Clock = &model.TestClock{Key: *c.TestClock, Now: *now}
	}
	if next != nil && nextVersion != nil && nextAt != nil {
		c.Scheduled = &plans.ScheduledChange{Plan: *next, PlanVersion: *nextVersion, At: time.UnixMicro(*nextAt).UTC()}
	}
	if suspended != nil {
		c.Suspension = &plans.Suspension{Reason: reason, At: suspended.UTC()}
	}
	// pgx returns times in the machine's timezone.
	c.CreatedAt, c.ArchivedAt, c.ErasedAt = c.CreatedAt.UTC(), inUTC(c.ArchivedAt), inUTC(c.ErasedAt)
	if c.Features, err = plans.ReadFeatures(features); err == nil {
		err = plans.ReadStored(former, &c.Former)
	}
	return c, err
}

func inUTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	utc := t.UTC()
	return &utc
}

const insertCustomer = `
	INSERT INTO customers (key, name, plan_id, joined_version, pinned_version, timezone,
		billing_anchor, metadata, change, features, words, created_at, test_clock_id)
	SELECT $1, $2, p.id, p.latest_version, $4, $5, $6, $7, $8, $9, array_to_tsvector($10::text[]), $11,
		(SELECT t.id FROM test_clocks t WHERE t.key = $12) FROM plans p WHERE p.id = $3`

// updateCustomer writes a customer. A customer that changes to another plan joins it at its latest
// version. An anonymous customer becomes a named customer and keeps its usage.
const updateCustomer = `
	UPDATE customers c SET name = $2, plan_id = p.id, pinned_version = $4, timezone = $5,
		billing_anchor = $6, metadata = $7, change = $8, features = $9, words = array_to_tsvector($10::text[]), anonymous = false,
		joined_version = CASE WHEN c.plan_id = p.id THEN c.joined_version ELSE p.latest_version END
	FROM plans p WHERE c.key = $1 AND p.id = $3`

// putAttempts limits the tries of a customer's write. A write is retried if a hit created the customer at
// the same time.
const putAttempts = 8

// PutCustomer creates a customer, or replaces the customer if it satisfies pre. created is true for a new
// customer. Writing the stored values again changes nothing. Without a billing anchor, a new customer
// gets the wall clock in its timezone, and an existing customer keeps its anchor. The test clock is
// chosen at the creation and cannot be changed. An anonymous customer needs no precondition and becomes a
// named customer.
//
// Errors: model.FieldErrors with all invalid fields, plans.ErrArchived, plans.ErrPrecondition,
// plans.ErrPreconditionRequired.
func (s *Store) PutCustomer(ctx context.Context, key string, in plans.CustomerInput, pre plans.Precondition) (c *plans.Customer, created bool, err error) {
	bad := in.Check(key)
	plan, badPlan, err := s.customersPlan(ctx, in)
	if err != nil {
		return nil, false, err
	}
	if bad = append(bad, badPlan...); len(bad) > 0 {
		return nil, false, bad
	}
	if in.Metadata == nil {
		in.Metadata = map[string]string{}
	}
	// A hit does not take the lock of admin writes, so it may create a customer of this key at the same
	// moment. The insert then fails, and the next try finds the customer.
	var writing *Writing
	for range putAttempts {
		err = s.WriteCustomer(ctx, key, func(ctx context.Context, w *Writing) (err error) {
			writing = w
			c, created, err = w.putCustomer(ctx, key, in, plan, pre)
			return err
		})
		if !isDuplicate(err) {
			break
		}
	}
	if err != nil {
		return nil, false, err
	}
	c.Scheduled = writing.laid
	return c, created, nil
}

// isDuplicate reports whether a write failed because a row with the same key existed already.
func isDuplicate(err error) bool {
	const uniqueViolation = "23505"
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && said.Code == uniqueViolation
}

// putCustomer is PutCustomer under the lock. The caller has made all checks that do not depend on the
// stored customer.
func (w *Writing) putCustomer(ctx context.Context, key string, in plans.CustomerInput, plan int32, pre plans.Precondition) (c *plans.Customer,
	created bool, err error,
) {
	old, err := one(ctx, w, plans.ErrUnknownCustomer, scanCustomer, getCustomer, key)
	created = errors.Is(err, plans.ErrUnknownCustomer)
	switch {
	case created:
		old = new(plans.Customer)
	case err != nil:
		return nil, false, err
	case old.ArchivedAt != nil:
		return nil, false, plans.ErrArchived
	}
	// Nobody has written an anonymous customer yet, so a write without If-Match cannot overwrite anyone's
	// changes unseen.
	written := !created && (!old.Anonymous || pre.Given)
	if err := pre.Check(written, old.ETag()); err != nil {
		return nil, false, err
	}
	if old.Clock, err = w.joinClock(ctx, old, created, in.TestClock); err != nil {
		return nil, false, err
	}
	if in.BillingAnchor == "" {
		if in.BillingAnchor, err = defaultAnchor(old, in.Timezone, w.Now); err != nil {
			return nil, false, err
		}
	}
	runs, err := w.changes(ctx, old, in, created)
	if err != nil {
		return old, false, err
	}
	if c, err = w.writeCustomer(ctx, key, old, in, plan, created); err != nil {
		return nil, false, err
	}
	if !created && in.Change == "" {
		if err := w.mustSay(ctx, old, c); err != nil {
			return nil, false, err
		}
	}
	err = w.Audit(ctx, plans.Audited{
		Action: plans.AuditWrite(created), Target: "customers/" + key, Customer: c.ID, Before: unless(created, auditCustomer(old)), After: auditCustomer(c),
	})
	if err != nil {
		return nil, false, err
	}
	if created || old.Anonymous {
		if err := w.tell(ctx, events.CustomerCreated, c, client.EventData{Plan: c.Plan, PlanVersion: c.EffectiveVersion}); err != nil {
			return nil, false, err
		}
		return c, created, w.name(ctx, old, c, created)
	}
	if err := w.tellPlan(ctx, old, c, w.InstantOf(c)); err != nil {
		return nil, false, err
	}
	return c, false, w.reschedule(ctx, old, c, in.Change == plans.ChangeNow, runs)
}

// changes returns errUnchanged if the write would change nothing and no other plan is pending. If the
// change mode is now, changes returns the running period.
func (w *Writing) changes(ctx context.Context, old *plans.Customer, in plans.CustomerInput, created bool) (runs *Running, err error) {
	if created {
		return nil, nil
	}
	if in.Change == plans.ChangeNow {
		if runs, err = w.running(ctx, old); err != nil {
			return nil, err
		}
	}
	if isAs(old, in) {
		if waits, err := w.waits(ctx, old, runs); err != nil || !waits {
			return nil, cmp.Or(err, errUnchanged)
		}
	}
	return runs, nil
}

// otherPlan reports whether a write changes a customer's plan or pin.
func otherPlan(old *plans.Customer, in *plans.CustomerInput) bool {
	return old.Plan != in.Plan || !reflect.DeepEqual(old.PlanVersion, in.PlanVersion)
}

const hasOwnPrice = `
	SELECT EXISTS (SELECT FROM (
		SELECT DISTINCT ON (meter) price FROM customer_prices WHERE customer_id = $1 ORDER BY meter, change DESC) p
		WHERE price IS NOT NULL)`

// mustSay returns a field error about change if a write changes a customer's plan or pin without
// specifying change, and the new or the former plan has a cost. A write of an anonymous customer need not
// specify change.
func (w *Writing) mustSay(ctx context.Context, old, c *plans.Customer) error {
	if old.Anonymous || !otherPlan(old, &c.CustomerInput) {
		return nil
	}
	var costs bool
	if err := w.QueryRow(ctx, hasOwnPrice, c.ID).Scan(&costs); err != nil {
		return err
	}
	for _, on := range []*plans.Customer{old, c} {
		p, err := one(ctx, w, plans.ErrUnknownVersion, scanPlan, getPlanVersion, on.Plan, int64(on.EffectiveVersion))
		if err != nil {
			return err
		}
		costs = costs || p.Costs()
	}
	if !costs {
		return nil
	}
	return model.FieldErrors{{Field: "change", Detail: plans.ChangeRule}}
}

// writeCustomer writes a customer's row and reads the row again. A change of plan or pin also records the
// refill rates of the customer's token buckets.
func (w *Writing) writeCustomer(ctx context.Context, key string, old *plans.Customer, in plans.CustomerInput, plan int32,
	created bool,
) (c *plans.Customer, err error) {
	var was *rated
	if !created && otherPlan(old, &in) {
		if was, err = w.rated(ctx, old, ""); err != nil {
			return nil, err
		}
		w.Scheduled = nil // the latest request counts
	}
	statement, args := updateCustomer, []any{
		key, in.Name, plan, in.PlanVersion, in.Timezone,
		in.BillingAnchor, in.Metadata, w.Number, in.Features, wordsOf(in.Name),
	}
	if created {
		statement, args = insertCustomer, append(args, w.Now, in.TestClock)
	}
	if _, err := w.Exec(ctx, statement, args...); err != nil {
		return nil, err
	}
	c, err = one(ctx, w, plans.ErrUnknownCustomer, scanCustomer, getCustomer, key)
	if err == nil && was != nil {
		err = w.keepAllRates(ctx, was, c)
	}
	return c, err
}

// name starts the billing of a customer that is new or was anonymous until now.
func (w *Writing) name(ctx context.Context, old, c *plans.Customer, created bool) error {
	if !created { // the customer's limits may use its periods already
		was, err := w.periodsOf(ctx, old)
		if err != nil {
			return err
		}
		is, err := w.periodsOf(ctx, c)
		if err != nil {
			return err
		}
		if was.Anchor != is.Anchor || was.Interval != is.Interval || old.Timezone != c.Timezone {
			change := &CustomerChange{}
			now := w.InstantOf(old)
			_, change.From = was.Period(now)
			if err := w.keepFormer(ctx, old, c, &was.Periods, now, change); err != nil {
				return err
			}
		}
	}
	now := w.InstantOf(c)
	if err := w.recordTerms(ctx, c.ID, plans.TermsNamed, 0, now); err != nil {
		return err
	}
	return w.changed(ctx, &CustomerChange{What: CustomerNamed, Customer: c, Now: now, Terms: true})
}

// isAs reports whether writing in would leave the customer unchanged.
func isAs(c *plans.Customer, in plans.CustomerInput) bool {
	in.TestClock, in.Change = c.TestClock, "" // neither field changes a customer by itself
	return !c.Anonymous && reflect.DeepEqual(c.CustomerInput, in)
}

// defaultAnchor returns the anchor of a customer that was written without an anchor. An existing customer
// keeps its anchor. A new customer gets the wall clock in its timezone at its creation, in whole seconds,
// by the customer's clock. An anonymous customer gets the same, because nobody had chosen its timezone
// before.
func defaultAnchor(old *plans.Customer, timezone string, now time.Time) (string, error) {
	if old.BillingAnchor != "" && !old.Anonymous {
		return old.BillingAnchor, nil
	}
	if old.Anonymous {
		now = old.CreatedAt
	}
	zone, err := calendar.Location(timezone)
	if err != nil {
		return "", err
	}
	at := now.UnixMicro()
	if old.Clock != nil {
		at = old.Clock.Now
	}
	anchor, err := calendar.AnchorAt(at, zone)
	if err != nil && old.Clock != nil {
		return "", model.FieldErrors{{Field: "billing_anchor", Detail: fmt.Sprintf(
			"must be given: the test clock shows no year from %d to %d there", calendar.MinAnchorYear, calendar.MaxAnchorYear)}}
	}
	if err != nil {
		return "", fmt.Errorf("the database's clock: %w", err)
	}
	return anchor.String(), nil
}

const customersPlan = `
	SELECT p.id, $2::integer IS NULL OR EXISTS (
		SELECT FROM plan_versions v WHERE v.plan_id = p.id AND v.version = $2)
	FROM plans p WHERE p.key = $1`

// customersPlan looks up the plan and its version. Plans and versions are never removed, so the result
// stays valid until the customer is written. bad contains an error for a plan or version that does not
// exist.
func (s *Store) customersPlan(ctx context.Context, in plans.CustomerInput) (id int32, bad model.FieldErrors, err error) {
	if !plans.ValidKey(in.Plan) {
		return 0, nil, nil
	}
	version := in.PlanVersion
	if version != nil && (*version < 1 || *version > math.MaxInt32) {
		version = nil // rejected already, and too large for the column
	}
	type found struct {
		ID      int32
		Version bool
	}
	plan, err := read(ctx, s, plans.ErrUnknownPlan, pgx.RowToStructByPos[found], customersPlan, in.Plan, version)
	if errors.Is(err, plans.ErrUnknownPlan) {
		return 0, noSuchPlan(in.Plan), nil
	}
	if err == nil && !plan.Version {
		bad = model.FieldErrors{{Field: "plan_version", Detail: "the plan has no such version: GET /v1/plans/" + in.Plan + "/versions lists them"}}
	}
	return plan.ID, bad, err
}

const getCustomer = `SELECT` + customerColumns + customerNow + ` WHERE c.key = $1`

// GetCustomer returns a customer, even if archived, or the error plans.ErrUnknownCustomer.
func (s *Store) GetCustomer(ctx context.Context, key string) (*plans.Customer, error) {
	if !plans.ValidCustomerKey(key) {
		return nil, plans.ErrUnknownCustomer
	}
	c, err := read(ctx, s, plans.ErrUnknownCustomer, scanCustomer, getCustomer, key)
	// The entity tag belongs to the customer's current state, so a scheduled change that applies is written
	// first.
	if err == nil && c.Due && s.Settle(ctx, key) == nil {
		return read(ctx, s, plans.ErrUnknownCustomer, scanCustomer, getCustomer, key)
	}
	return c, err
}
