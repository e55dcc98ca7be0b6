package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
)

// A scheduled change of plan is a waiting row of customer_terms. From the change's instant on, readers
// read the plan from that row, so nothing has to be written at that moment. The next write of the
// customer, or the sweeper, settles the change, which means that it writes the plan into the customer. A
// write of a customer's billing removes a waiting row first and inserts it again last. The row thus
// follows the end of the period if the write moves that end.

// Scheduled is a pending change of plan.
type Scheduled struct {
	Until  string // plans.UntilPeriodEnd or plans.UntilBaseEnd; "" chooses by the running plan
	PlanID int32
	Joined int // the plan's latest version at the time of scheduling
	Pinned *int

	customer, at, change int64
	reached              *int64 // change at which the test clock reached at; nil if there is none, and on PostgreSQL's time
	plan                 string
	former, isNew        bool
}

// Version returns the plan version that the scheduled change names.
func (s *Scheduled) Version() int {
	if s.Pinned != nil {
		return *s.Pinned
	}
	return s.Joined
}

// customerNow lists the tables of customerColumns. A scheduled change is in effect from its instant on,
// as it is for hits.
const customerNow = `
	FROM customers c LEFT JOIN test_clocks t ON t.id = c.test_clock_id LEFT JOIN customer_terms s ON s.customer_id = c.id AND s.waits
	CROSS JOIN LATERAL (
		SELECT coalesce(s.reached IS NOT NULL OR s.limits_at <= coalesce(t.now, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint), false) AS due) w
	CROSS JOIN LATERAL (
		SELECT CASE WHEN w.due THEN s.plan_id ELSE c.plan_id END AS plan_id,
			CASE WHEN w.due THEN s.pinned_version ELSE c.pinned_version END AS pinned_version,
			CASE WHEN w.due THEN s.joined_version ELSE c.joined_version END AS joined_version) f
	JOIN plans p ON p.id = f.plan_id LEFT JOIN plans q ON q.id = s.plan_id AND NOT w.due`

// nextVersion selects, for the plan of a scheduled change, the version that would apply if the change took
// effect now.
const nextVersion = `
	coalesce(s.pinned_version, greatest(s.joined_version, (
		SELECT max(v.version) FROM plan_versions v WHERE v.plan_id = s.plan_id AND v.apply_to = 'all')))`

const readScheduled = `
	SELECT s.customer_id, s.how, s.plan_id, s.joined_version, s.pinned_version, s.limits_at, s.former, q.key, s.change, s.reached, ` + nextVersion + `,
		t.now, c.former_periods
	FROM customers c JOIN customer_terms s ON s.customer_id = c.id AND s.waits JOIN plans q ON q.id = s.plan_id
	LEFT JOIN test_clocks t ON t.id = c.test_clock_id WHERE c.key = $1`

// At returns the instant from which the change applies, µs by the customer's clock.
func (s *Scheduled) At() int64 { return s.at }

const dropScheduled = `DELETE FROM customer_terms WHERE customer_id = $1 AND waits`

// scheduled returns a customer's pending scheduled change and the customer's former periods. Both are nil
// if no change is pending. A change that applies already is written into the customer.
func (w *Writing) scheduled(ctx context.Context, key string) (s *Scheduled, former []byte, err error) {
	s, version := new(Scheduled), 0
	var clockNow *int64
	err = w.QueryRow(ctx, readScheduled, key).Scan(
		&s.customer, &s.Until, &s.PlanID, &s.Joined, &s.Pinned, &s.at, &s.former, &s.plan, &s.change, &s.reached, &version, &clockNow, &former)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	now := w.Now.UnixMicro()
	if clockNow != nil {
		now = *clockNow
	}
	if s.reached != nil || s.at <= now {
		return nil, nil, w.settle(ctx, s)
	}
	w.laid = &plans.ScheduledChange{Plan: s.plan, PlanVersion: version, At: time.UnixMicro(s.at).UTC()}
	return s, former, nil
}

// lift deletes a customer's pending scheduled change, which lay inserts again.
func (w *Writing) lift(ctx context.Context, key string) error {
	s, former, err := w.scheduled(ctx, key)
	if err != nil || s == nil {
		return err
	}
	w.Scheduled, w.lifted, w.liftedOf = s, w.laid, s.customer
	if _, err := w.Exec(ctx, dropScheduled, s.customer); err != nil || !s.former {
		return err
	}
	var before []plans.FormerPeriods
	if err := plans.ReadStored(former, &before); err != nil {
		return err
	}
	return w.storeFormer(ctx, s.customer, before[:len(before)-1])
}

func (w *Writing) storeFormer(ctx context.Context, customer int64, former []plans.FormerPeriods) error {
	if former == nil {
		former = []plans.FormerPeriods{}
	}
	stored, err := json.Marshal(former)
	if err == nil {
		_, err = w.Exec(ctx, setFormer, customer, stored)
	}
	return err
}

const insertScheduled = `
	INSERT INTO customer_terms (customer_id, change, how, limits_at, from_at, waits, clock_id, former,
		plan_id, joined_version, pinned_version, timezone, billing_anchor)
	SELECT id, $2, $4, $3, $3, true, test_clock_id, $8, $5, $6, $7, timezone, billing_anchor FROM customers WHERE id = $1`

const getCustomerByID = `SELECT` + customerColumns + customerNow + ` WHERE c.id = $1`

// lay inserts the scheduled change again after a write, at the present end of its billing period. If
// there is no such end any more, lay drops the change, or returns an error if this write requested the
// change. Errors: plans.ErrNoOpenPeriod, plans.ErrEndsFirst, plans.ErrTooSoon, billing.ErrCurrency.
func (w *Writing) lay(ctx context.Context) error {
	s := w.Scheduled
	if w.laid = nil; s == nil {
		return nil
	}
	c, err := one(ctx, w, plans.ErrUnknownCustomer, scanCustomer, getCustomerByID, s.customer)
	if err != nil {
		return err
	}
	at, err := w.endFor(ctx, c, s)
	switch {
	case err != nil && !s.isNew && errors.Is(err, plans.ErrNotSchedulable):
		return nil
	case err != nil:
		return err
	case s.isNew && at-w.InstantOf(c) < plans.LeastNotice:
		return plans.ErrTooSoon
	}
	s.at = at
	next, err := one(ctx, w, plans.ErrUnknownVersion, scanPlan, getPlanVersion, s.plan, int64(s.Version()))
	if err != nil {
		return err
	}
	if s.former, err = w.layFormer(ctx, c, next, at); err != nil {
		return err
	}
	if _, err := w.Exec(ctx, insertScheduled, c.ID, w.Number, at, s.Until, s.PlanID, s.Joined, s.Pinned, s.former); err != nil {
		return err
	}
	c, err = one(ctx, w, plans.ErrUnknownCustomer, scanCustomer, getCustomerByID, s.customer)
	if err == nil {
		w.laid = c.Scheduled
	}
	return err
}

// endFor returns the instant from which a change applies, as billing determines it.
func (w *Writing) endFor(ctx context.Context, c *plans.Customer, s *Scheduled) (at int64, err error) {
	if w.billing == nil || w.Open == nil || c.ArchivedAt != nil {
		return 0, plans.ErrNoOpenPeriod
	}
	return w.billing.End(ctx, w, c.ID, s)
}

// layFormer ends a customer's billing periods at an instant and stores them as former periods, if the
// next plan has another billing interval. former is true if the periods were stored.
func (w *Writing) layFormer(ctx context.Context, c *plans.Customer, next *plans.Plan, at int64) (former bool, err error) {
	was, err := w.periodsOf(ctx, c)
	if err != nil || was.Interval == next.BillingInterval() {
		return false, err
	}
	if last := len(c.Former) - 1; last >= 0 && c.Former[last].Until == at {
		return false, nil // the periods end there already
	}
	ended := calendarOf(c, &was.Periods)
	ended.Until = at
	return true, w.storeFormer(ctx, c.ID, append(w.dropFormer(c.Former, w.InstantOf(c)), ended))
}

const newestVersion = `SELECT latest_version FROM plans WHERE id = $1`

// ScheduleChange schedules a change of plan for the end of a billing period, or of the intervals of its
// base price. The plan's limits and prices then apply on every node without a write at that moment. A
// pending change is replaced. until is plans.UntilPeriodEnd, plans.UntilBaseEnd, or "". An empty until
// means plans.UntilBaseEnd if the running base price covers several intervals, and plans.UntilPeriodEnd
// otherwise. The customer's entity tag changes.
//
// Errors: plans.ErrUnknownCustomer, plans.ErrArchived, plans.ErrNoOpenPeriod, plans.ErrEndsFirst,
// plans.ErrTooSoon, billing.ErrCurrency, and model.FieldErrors about plan, plan_version and when.
func (s *Store) ScheduleChange(ctx context.Context, key, plan string, pin *int, until string) (is *plans.ScheduledChange, created bool, err error) {
	asked := plans.CustomerInput{Plan: plan, PlanVersion: pin}
	bad := plans.CheckScheduled(plan, pin, until)
	id, badPlan, err := s.customersPlan(ctx, asked)
	if err != nil {
		return nil, false, err
	}
	if bad = append(bad, badPlan...); len(bad) > 0 {
		return nil, false, bad
	}
	var writing *Writing
	err = s.ChangeBilling(ctx, key, func(ctx context.Context, w *Writing, c *plans.Customer) error {
		before := w.laid
		created, writing = before == nil, w
		w.Scheduled = &Scheduled{Until: until, PlanID: id, Pinned: pin, customer: c.ID, plan: plan, isNew: true}
		if err := w.QueryRow(ctx, newestVersion, id).Scan(&w.Scheduled.Joined); err != nil {
			return err
		}
		w.audit = func() plans.Audited {
			return plans.Audited{
				Action: plans.AuditWrite(created), Target: scheduledTarget(key), Customer: c.ID, Before: auditScheduled(before), After: auditScheduled(w.laid),
			}
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return writing.laid, created, nil
}

// DropScheduled deletes a scheduled change. The customer's entity tag changes. Errors:
// plans.ErrUnknownCustomer, plans.ErrArchived, plans.ErrNoScheduled.
func (s *Store) DropScheduled(ctx context.Context, key string) error {
	return s.ChangeBilling(ctx, key, func(ctx context.Context, w *Writing, c *plans.Customer) error {
		if w.Scheduled == nil {
			return plans.ErrNoScheduled
		}
		w.Scheduled = nil
		return w.Audit(ctx, plans.Audited{
			Action: plans.AuditDelete, Target: scheduledTarget(key), Customer: c.ID, Before: auditScheduled(w.laid),
		})
	})
}

func scheduledTarget(customer string) string { return "customers/" + customer + "/scheduled-change" }

const applyScheduled = `
	WITH s AS (UPDATE customer_terms SET waits = false WHERE customer_id = $1 AND waits RETURNING *)
	UPDATE customers c SET plan_id = s.plan_id, joined_version = s.joined_version, pinned_version = s.pinned_version, change = $2
	FROM s WHERE c.id = s.customer_id`

// versionsThen selects the plan of a customer before its scheduled change, and the versions of that plan
// and of the new plan in force at the change's instant. $2 is the instant, and $3 is the change at which
// the customer's test clock reached it.
const versionsThen = `
	SELECT p.key, coalesce(c.pinned_version, greatest(c.joined_version, max(v.version) FILTER (WHERE v.plan_id = c.plan_id))),
		coalesce(s.pinned_version, greatest(s.joined_version, max(v.version) FILTER (WHERE v.plan_id = s.plan_id)))
	FROM customers c JOIN customer_terms s ON s.customer_id = c.id AND s.waits JOIN plans p ON p.id = c.plan_id
	LEFT JOIN plan_versions v ON v.plan_id IN (c.plan_id, s.plan_id) AND v.apply_to = 'all'
		AND CASE WHEN c.test_clock_id IS NULL THEN (extract(epoch FROM v.created_at) * 1000000)::bigint < $2 ELSE v.change < $3 END
	WHERE c.id = $1 GROUP BY p.key, c.pinned_version, c.joined_version, s.pinned_version, s.joined_version`

// settle writes a scheduled change into the customer when the change applies already, and reports the
// change of plan by an event. All limits and prices apply as before. Every write of a customer first
// settles such a change, so that the write finds the plan that applies.
func (w *Writing) settle(ctx context.Context, s *Scheduled) error {
	old, err := one(ctx, w, plans.ErrUnknownCustomer, scanCustomer, getCustomerByID, s.customer)
	if err != nil {
		return err
	}
	version, number := 0, s.change
	if s.reached != nil {
		number = *s.reached
	}
	if err := w.QueryRow(ctx, versionsThen, old.ID, s.at, number).Scan(&old.Plan, &old.EffectiveVersion, &version); err != nil {
		return err
	}
	was, err := w.rated(ctx, old, "")
	if err != nil {
		return err
	}
	was.now, was.number = s.at, number
	if _, err := w.Exec(ctx, applyScheduled, old.ID, w.Number); err != nil {
		return err
	}
	c, err := one(ctx, w, plans.ErrUnknownCustomer, scanCustomer, getCustomerByID, s.customer)
	if err != nil {
		return err
	}
	if err := w.keepAllRates(ctx, was, c); err != nil {
		return err
	}
	w.settled = true
	c.EffectiveVersion = version
	return w.tellPlan(ctx, old, c, s.at)
}

// Settle writes a customer's scheduled change into the customer if the change applies already. Otherwise
// Settle does nothing.
func (s *Store) Settle(ctx context.Context, key string) error {
	return s.Write(plans.Itself(ctx), KindCustomer, key, func(ctx context.Context, w *Writing) error {
		_, _, err := w.scheduled(ctx, key)
		return cmp.Or(err, errUnchanged)
	})
}

const dueScheduled = `
	(SELECT c.key FROM customer_terms s JOIN customers c ON c.id = s.customer_id
		WHERE s.waits AND s.clock_id IS NULL AND s.limits_at <= $1 ORDER BY s.limits_at LIMIT $2)
	UNION ALL
	(SELECT c.key FROM customer_terms s JOIN customers c ON c.id = s.customer_id WHERE s.waits AND s.reached IS NOT NULL LIMIT $2)`

// DueScheduled returns customers whose scheduled changes apply at now, µs, but have not been written yet.
// The parameter most limits the number of customers on real time and, separately, of customers on test
// clocks.
func (s *Store) DueScheduled(ctx context.Context, now int64, most int) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	rows, _ := s.pool.Query(ctx, dueScheduled, now, most)
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return keys, Classify(err)
}

// reachScheduled records the scheduled changes whose instant a test clock has reached. These changes
// apply from then on, even if the clock is set back.
const reachScheduled = `
	UPDATE customer_terms SET reached = t.change FROM test_clocks t
	WHERE t.key = $1 AND waits AND clock_id = t.id AND limits_at <= t.now AND reached IS NULL`
