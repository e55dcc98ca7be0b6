package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
)

// A scheduled change of plan waits in a row of its own. From its instant on readers take the plan from
// there, so that nothing has to be written at that moment. Later somebody writes it into the customer,
// see ApplyScheduled. Whoever writes a customer's billing takes the row away first and puts it back
// last: what moves the end that it waits for moves it along.

// Scheduled is a change of plan that waits.
type Scheduled struct {
	Until  string // plans.UntilPeriodEnd or plans.UntilBaseEnd; "" asks for what the running plan suggests
	PlanID int32
	Joined int // the plan's latest version when it was scheduled
	Pinned *int

	customer, at, change int64
	plan                 string
	former, isNew        bool
}

// Version is the plan version that it names.
func (s *Scheduled) Version() int {
	if s.Pinned != nil {
		return *s.Pinned
	}
	return s.Joined
}

// customerNow has the tables of customerColumns. A scheduled change counts from its instant on, as it
// does for hits.
const customerNow = `
	FROM customers c LEFT JOIN test_clocks t ON t.id = c.test_clock_id LEFT JOIN scheduled_changes s ON s.customer_id = c.id
	CROSS JOIN LATERAL (
		SELECT coalesce(s.done OR s.at <= coalesce(t.now, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint), false) AS due) w
	CROSS JOIN LATERAL (
		SELECT CASE WHEN w.due THEN s.plan_id ELSE c.plan_id END AS plan_id,
			CASE WHEN w.due THEN s.pinned_version ELSE c.pinned_version END AS pinned_version,
			CASE WHEN w.due THEN s.joined_version ELSE c.joined_version END AS joined_version) f
	JOIN plans p ON p.id = f.plan_id LEFT JOIN plans q ON q.id = s.plan_id AND NOT w.due`

// nextVersion is the version of a scheduled change's plan that would be in force now.
const nextVersion = `
	coalesce(s.pinned_version, greatest(s.joined_version, (
		SELECT max(v.version) FROM plan_versions v WHERE v.plan_id = s.plan_id AND v.apply_to = 'all')))`

const readScheduled = `
	SELECT s.customer_id, s.until, s.plan_id, s.joined_version, s.pinned_version, s.at, s.former, q.key, s.change, s.done, ` + nextVersion + `,
		t.now, c.former_periods
	FROM customers c JOIN scheduled_changes s ON s.customer_id = c.id JOIN plans q ON q.id = s.plan_id
	LEFT JOIN test_clocks t ON t.id = c.test_clock_id WHERE c.key = $1`

// At is the instant from which on it counts, µs by the customer's clock.
func (s *Scheduled) At() int64 { return s.at }

// errDue: the customer has a scheduled change that counts already and is not written yet.
var errDue = errors.New("a scheduled change is due")

const dropScheduled = `DELETE FROM scheduled_changes WHERE customer_id = $1`

// scheduled reads a customer's scheduled change and the former periods, nil where there is none.
// Errors: errDue.
func (w *Writing) scheduled(ctx context.Context, key string) (s *Scheduled, former []byte, err error) {
	s, done, version := new(Scheduled), false, 0
	var clock *int64
	err = w.QueryRow(ctx, readScheduled, key).Scan(
		&s.customer, &s.Until, &s.PlanID, &s.Joined, &s.Pinned, &s.at, &s.former, &s.plan, &s.change, &done, &version, &clock, &former)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	}
	now := w.Now.UnixMicro()
	if clock != nil {
		now = *clock
	}
	if done || s.at <= now {
		return nil, nil, errDue
	}
	w.laid = &plans.ScheduledChange{Plan: s.plan, PlanVersion: version, At: time.UnixMicro(s.at).UTC()}
	return s, former, nil
}

// lift takes a customer's scheduled change out of the database, for lay. Errors: errDue.
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
	INSERT INTO scheduled_changes (customer_id, clock_id, change, at, until, plan_id, joined_version, pinned_version, former)
	SELECT id, test_clock_id, $2, $3, $4, $5, $6, $7, $8 FROM customers WHERE id = $1`

const getCustomerByID = `SELECT` + customerColumns + customerNow + ` WHERE c.id = $1`

// lay puts the scheduled change where it belongs after a write. One that has lost its place is dropped,
// unless this write asked for it. Errors: plans.ErrNoOpenPeriod, plans.ErrEndsFirst, plans.ErrTooSoon,
// billing.ErrCurrency.
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

// endFor asks billing when a change counts.
func (w *Writing) endFor(ctx context.Context, c *plans.Customer, s *Scheduled) (at int64, err error) {
	if w.billing == nil || w.Open == nil || c.ArchivedAt != nil {
		return 0, plans.ErrNoOpenPeriod
	}
	return w.billing.End(ctx, w, c.ID, s)
}

// layFormer lets a customer's periods be former ones from an instant on, where those of another plan
// differ.
func (w *Writing) layFormer(ctx context.Context, c *plans.Customer, next *plans.Plan, at int64) (former bool, err error) {
	was, err := w.periodsOf(ctx, c)
	if err != nil || was.Interval == next.BillingInterval() {
		return false, err
	}
	if last := len(c.Former) - 1; last >= 0 && c.Former[last].Until == at {
		return false, nil // they are that already
	}
	ended := calendarOf(c, &was.Periods)
	ended.Until = at
	return true, w.storeFormer(ctx, c.ID, append(w.dropFormer(c.Former, w.InstantOf(c)), ended))
}

const newestVersion = `SELECT latest_version FROM plans WHERE id = $1`

// ScheduleChange lets a plan's limits and prices count from the end of a billing period on, or of the
// intervals of its base price, on every node and without a write at that moment. It replaces one that
// waits. until is plans.UntilPeriodEnd, plans.UntilBaseEnd, or "" for the second where the running base
// price is for more intervals than one. The customer's entity tag changes.
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

// DropScheduled takes a scheduled change away. The customer's entity tag changes. Errors:
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
	WITH s AS (DELETE FROM scheduled_changes WHERE customer_id = $1 RETURNING *)
	UPDATE customers c SET plan_id = s.plan_id, joined_version = s.joined_version, pinned_version = s.pinned_version, change = $2
	FROM s WHERE c.id = s.customer_id`

// planBefore is what a customer with a scheduled change was on before that.
const planBefore = `
	SELECT p.key, coalesce(c.pinned_version, greatest(c.joined_version, (
		SELECT max(v.version) FROM plan_versions v WHERE v.plan_id = p.id AND v.apply_to = 'all'))), s.at, s.change
	FROM customers c JOIN plans p ON p.id = c.plan_id JOIN scheduled_changes s ON s.customer_id = c.id WHERE c.id = $1`

// recordApplied: at is from_at − 1, since the row counts for the periods that begin at its instant or
// later, and for none before. Its change is that of the schedule: versions that were written since
// then are no older. Where another row has that number, it is the number of this change.
const recordApplied = `
	INSERT INTO customer_terms (customer_id, change, from_at, at, plan_id, joined_version, pinned_version, timezone, billing_anchor)
	SELECT id, CASE WHEN EXISTS (SELECT FROM customer_terms WHERE customer_id = $1 AND change = $2) THEN $3::bigint ELSE $2 END, $4::bigint, $4 - 1,
		plan_id, joined_version, pinned_version, timezone, billing_anchor FROM customers WHERE id = $1`

// ApplyScheduled writes a customer's scheduled change that counts already into the customer. Nothing
// counts otherwise than before. Where there is none it does nothing. It is the one place that tells
// that the change has come to count: whoever is first deletes the row.
func (s *Store) ApplyScheduled(ctx context.Context, key string) error {
	return s.Write(plans.Itself(ctx), KindCustomer, key, func(ctx context.Context, w *Writing) error {
		if _, _, err := w.scheduled(ctx, key); !errors.Is(err, errDue) {
			if err == nil { // another node was quicker
				err = errUnchanged
			}
			return err
		}
		c, err := one(ctx, w, plans.ErrUnknownCustomer, scanCustomer, getCustomer, key)
		if err != nil {
			return err
		}
		old, at, change := *c, int64(0), int64(0)
		if err := w.QueryRow(ctx, planBefore, c.ID).Scan(&old.Plan, &old.EffectiveVersion, &at, &change); err != nil {
			return err
		}
		was, err := w.rated(ctx, &old, "")
		if err != nil {
			return err
		}
		was.now = at
		if _, err := w.Exec(ctx, applyScheduled, c.ID, w.Number); err != nil {
			return err
		}
		if err := w.keepAllRates(ctx, was, c); err != nil {
			return err
		}
		if _, err = w.Exec(ctx, recordApplied, c.ID, change, w.Number, at); err != nil {
			return err
		}
		return w.tellPlan(ctx, &old, c, at)
	})
}

const dueScheduled = `
	(SELECT c.key FROM scheduled_changes s JOIN customers c ON c.id = s.customer_id WHERE s.clock_id IS NULL AND s.at <= $1 ORDER BY s.at LIMIT $2)
	UNION ALL
	(SELECT c.key FROM scheduled_changes s JOIN customers c ON c.id = s.customer_id WHERE s.done LIMIT $2)`

// DueScheduled are customers whose scheduled changes count at now, µs, and are not written yet: some
// most of those in real time, and some of those on test clocks.
func (s *Store) DueScheduled(ctx context.Context, now int64, most int) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	rows, _ := s.pool.Query(ctx, dueScheduled, now, most)
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return keys, Classify(err)
}

// doneScheduled notes which changes a test clock has reached: they stay done when it is set back.
const doneScheduled = `
	UPDATE scheduled_changes SET done = true FROM test_clocks t WHERE t.key = $1 AND clock_id = t.id AND at <= t.now`
