package accounts

import (
	"context"
	"encoding/json"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/events"
	"quotad/internal/plans"
	"quotad/internal/postgres"
	"quotad/internal/quota/model"
)

// Customer is the billing state of a customer, as read by one statement.
type Customer struct {
	ID       int64
	Key      string
	Archived bool
	Erased   bool
	Clock    string // the key of the customer's test clock; "" is PostgreSQL's time
	Now      int64  // the present instant of the customer's clock
	plan     int32  // the customer's current plan
	Zone     string // the customer's timezone
	Change   int64  // the number of the customer's newest change
	ClockSet int64  // the change number of the test clock; 0 without a clock

	Account    billing.Account
	Open       *billing.Period // nil if billing is over
	chain, n   int             // of the open period, or of the next period if none is open
	openingDue bool
	toBegin    bool // the period's prices are not fixed yet, which happens when it begins
}

// EndedEvent returns the event that a customer's billing is over from the instant at, µs.
func EndedEvent(c *Customer, at int64) events.Event {
	return events.Event{Type: events.CustomerEnded, At: at, Customer: c.ID, TestClock: c.Clock}
}

// OpenStart returns the start of the open period. All time before the start is closed.
func (c *Customer) OpenStart() int64 {
	if c.Open == nil {
		return math.MaxInt64
	}
	return c.Open.Start
}

const customerRows = `
	SELECT o.customer_id, c.key, c.archived_at IS NOT NULL, c.erased_at IS NOT NULL, coalesce(t.key, ''), coalesce(t.now, $2::bigint), c.plan_id,
		c.timezone, c.change, coalesce(t.change, 0),
		a.currency, a.starts_at, a.starts_set_at, a.trial_ends_at, a.ends_at, a.ends_with_period, a.after_end, a.break_from, a.break_to,
		a.known_from, a.known_end, a.seller, a.buyer, a.taxes,
		a.due_days, a.order_reference, a.notes, a.written, a.change,
		o.chain, o.n, o.start_at, o.end_at, o.full_start, o.full_end, o.known_end, o.trial, o.plan_id, o.version, o.prices, o.base, o.opening_due, o.to_begin
	FROM unnest($1::bigint[]) AS w (id)
	JOIN open_periods o ON o.customer_id = w.id
	JOIN billing_accounts a ON a.customer_id = w.id
	JOIN customers c ON c.id = w.id
	LEFT JOIN test_clocks t ON t.id = o.clock_id`

// ReadCustomers reads the billing state of customers, by id. now is PostgreSQL's time. The result omits
// customers that are not billed.
func ReadCustomers(ctx context.Context, q postgres.Querier, ids []int64, now int64) (map[int64]*Customer, error) {
	b := new(pgx.Batch)
	all := QueueCustomers(b, ids, now)
	return all, postgres.Send(ctx, q, b)
}

// QueueCustomers adds the query of ReadCustomers to a batch. The returned map is filled when the batch is sent.
func QueueCustomers(b *pgx.Batch, ids []int64, now int64) map[int64]*Customer {
	all := make(map[int64]*Customer, len(ids))
	b.Queue(customerRows, ids, now).Query(func(rows pgx.Rows) error {
		read, err := pgx.CollectRows(rows, scanCustomer)
		for _, c := range read {
			all[c.ID] = c
		}
		return err
	})
	return all
}

func scanCustomer(row pgx.CollectableRow) (*Customer, error) {
	c := new(Customer)
	a := &c.Account
	var start, end, fullStart, fullEnd, knownEnd *int64
	var plan *int32
	var number *int
	var currency *string
	var trial bool
	var buyer, taxes, prices []byte
	var base *billing.Base
	err := row.Scan(&c.ID, &c.Key, &c.Archived, &c.Erased, &c.Clock, &c.Now, &c.plan,
		&c.Zone, &c.Change, &c.ClockSet,
		&currency, &a.StartsAt, &a.StartsSetAt, &a.TrialEndsAt, &a.EndsAt, &a.EndsWithPeriod, &a.AfterEnd, &a.BreakFrom, &a.BreakTo, &a.KnownFrom,
		&a.KnownEnd, &a.Seller, &buyer, &taxes,
		&a.DueDays, &a.OrderReference, &a.Notes, &a.Written, &a.Change,
		&c.chain, &c.n, &start, &end, &fullStart, &fullEnd, &knownEnd, &trial, &plan, &number, &prices, &base, &c.openingDue, &c.toBegin)
	if err != nil {
		return nil, err
	}
	a.Customer = c.ID
	if currency != nil {
		a.Currency = *currency
	}
	if err = json.Unmarshal(buyer, &a.Buyer); err == nil {
		err = json.Unmarshal(taxes, &a.Taxes)
	}
	if err != nil || start == nil {
		return c, err
	}
	c.Open = &billing.Period{
		Chain: c.chain, N: c.n, Start: *start, End: *end, FullStart: *fullStart, FullEnd: *fullEnd, KnownEnd: *knownEnd,
		Trial: trial, PlanID: *plan, Version: *number, Base: base,
	}
	c.Open.Prices, err = ReadPrices(prices)
	return c, err
}

// emptyDocument is the length of {}, which is the stored form of no prices. Most customers have no prices of
// their own.
const emptyDocument = 2

// ReadPrices decodes a customer's own prices that are stored with a period.
func ReadPrices(raw []byte) (prices map[string]plans.Price, err error) {
	if len(raw) > emptyDocument {
		err = json.Unmarshal(raw, &prices)
	}
	return prices, err
}

const customerByKey = `
	SELECT c.id, c.anonymous, c.archived_at IS NOT NULL FROM customers c WHERE c.key = $1`

// Find returns the id of a customer that is billed. Errors: plans.ErrUnknownCustomer, billing.ErrAnonymous.
func Find(ctx context.Context, q postgres.Querier, key string) (id int64, archived bool, err error) {
	if !plans.ValidCustomerKey(key) {
		return 0, false, plans.ErrUnknownCustomer
	}
	var anonymous bool
	switch err = q.QueryRow(ctx, customerByKey, key).Scan(&id, &anonymous, &archived); {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, false, plans.ErrUnknownCustomer
	case err == nil && anonymous:
		return 0, false, billing.ErrAnonymous
	}
	return id, archived, err
}

const lockOne = `SELECT FROM open_periods WHERE customer_id = $1 FOR UPDATE`

// Lock locks a customer's billing and then reads the customer. The read is a separate statement because a
// statement that locks and reads might pair the new row of one table with the old row of another.
func (as *Accounts) Lock(ctx context.Context, tx pgx.Tx, id int64) (*Customer, error) {
	now, err := as.Now(ctx)
	if err != nil {
		return nil, err
	}
	if done, err := tx.Exec(ctx, lockOne, id); err != nil || done.RowsAffected() == 0 {
		if err == nil {
			err = billing.ErrAnonymous
		}
		return nil, err
	}
	read, err := ReadCustomers(ctx, tx, []int64{id}, now)
	if err != nil {
		return nil, err
	}
	if read[id] == nil {
		return nil, billing.ErrAnonymous
	}
	return read[id], nil
}

// OnCustomer runs do under the lock of a customer's billing. Errors: plans.ErrUnknownCustomer,
// plans.ErrArchived, billing.ErrAnonymous.
func (as *Accounts) OnCustomer(ctx context.Context, key string, do func(ctx context.Context, tx pgx.Tx, c *Customer) error) error {
	return as.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		id, _, err := Find(ctx, tx, key)
		if err != nil {
			return err
		}
		c, err := as.Lock(ctx, tx, id)
		if err != nil {
			return err
		}
		if c.Archived {
			return plans.ErrArchived
		}
		if err := do(ctx, tx, c); err != nil {
			return err
		}
		return as.SetDue(ctx, tx, id)
	})
}

// CheckCurrency rejects a currency other than the customer's.
func (c *Customer) CheckCurrency(currency string) error {
	if c.Account.Currency != "" && currency != c.Account.Currency {
		return model.FieldErrors{{Field: "currency", Detail: "must be " + c.Account.Currency + ", the customer's, which is fixed"}}
	}
	return nil
}

// Kinds of steps, in the order in which steps of the same instant are run.
const (
	StepBegin    = "begin"
	StepOpening  = "opening"
	StepFinalize = "finalize"
	StepClose    = "close"
	StepOwed     = "owed" // create an extra invoice
	StepExpire   = "expire"
)

// Step is the next billing step of a customer.
type Step struct {
	Kind  string // "" if no step is ever due in the present state
	At    int64  // µs by the customer's clock
	Draft string // id of the draft to finalize
}

// stepsOf selects the billing steps of a customer with their instants. $2 is the close delay in µs, which
// does not apply to erased customers. $3 is PostgreSQL's time.
//
// The last period of an erased customer is closed by now at the latest. That period may end just after the
// last hit, which can be later than the test clock shows.
//
// The expiry of a credit is booked after all invoices that the credit could pay are finalized. A credit
// cannot pay an extra invoice that is finalized after the expiry, so drafts of extra invoices do not delay
// the expiry.
const stepsOf = `
	LATERAL (
		SELECT CASE WHEN c.erased_at IS NULL THEN $2::bigint ELSE 0 END AS delay, c.erased_at IS NOT NULL AS erased,
			coalesce((SELECT t.now FROM test_clocks t WHERE t.id = c.test_clock_id), $3::bigint) AS now
	) w,
	LATERAL (
		SELECT min(CASE kind WHEN 'opening' THEN period_start ELSE period_end END) AS instant
		FROM invoices WHERE customer_id = o.customer_id AND status = 'draft' AND n >= 0
	) drafts,
	LATERAL (
		SELECT 'begin' AS kind, o.start_at AS at, 0 AS rank, NULL::uuid AS draft WHERE o.to_begin AND o.start_at IS NOT NULL
		UNION ALL
		SELECT 'opening', greatest(o.start_at, a.starts_set_at) + w.delay, 1, NULL WHERE o.opening_due AND o.start_at IS NOT NULL
		UNION ALL
		SELECT * FROM (
			SELECT 'finalize', CASE WHEN w.erased AND i.held IS NULL THEN i.made_at ELSE i.finalize_at END AS at, 2, i.id
			FROM invoices i WHERE i.customer_id = o.customer_id AND i.status = 'draft'
			ORDER BY 2, CASE i.kind WHEN 'opening' THEN i.period_start ELSE i.period_end END, i.id LIMIT 1) f
		UNION ALL
		SELECT 'close', CASE WHEN w.erased THEN least(greatest(o.end_at, a.starts_set_at), w.now)
			ELSE greatest(o.end_at, a.starts_set_at) + w.delay END, 3, NULL WHERE o.end_at IS NOT NULL
		UNION ALL
		SELECT 'owed', o.owed_at + w.delay, 3, NULL WHERE o.owed_at IS NOT NULL AND o.start_at IS NULL
		UNION ALL
		SELECT 'expire', e.at, 4, NULL FROM (
			SELECT min(r.expires_at) AS at FROM credits r WHERE r.customer_id = o.customer_id AND r.left_minor > 0 AND r.expires_at <= coalesce(
				least(CASE WHEN o.opening_due THEN o.start_at END, o.end_at, drafts.instant), 9223372036854775807)) e
		WHERE e.at IS NOT NULL
	) s`

const readSteps = `
	SELECT DISTINCT ON (o.customer_id) o.customer_id, s.kind, s.at, coalesce(s.draft::text, '')
	FROM open_periods o JOIN billing_accounts a ON a.customer_id = o.customer_id JOIN customers c ON c.id = o.customer_id,` + stepsOf + `
	WHERE o.customer_id = ANY ($1::bigint[]) ORDER BY o.customer_id, s.at, s.rank`

// QueueSteps reads the next step of each customer. The result omits customers without a step. now is
// PostgreSQL's time.
func (as *Accounts) QueueSteps(b *pgx.Batch, ids []int64, now int64) map[int64]Step {
	return queueSteps(b, ids, as.closeDelay, now)
}

// QueueStepsAtOnce queues the same read as QueueSteps, as if periods were closed without delay.
func QueueStepsAtOnce(b *pgx.Batch, ids []int64, now int64) map[int64]Step {
	return queueSteps(b, ids, 0, now)
}

func queueSteps(b *pgx.Batch, ids []int64, delay, now int64) map[int64]Step {
	all := make(map[int64]Step, len(ids))
	var id int64
	var s Step
	postgres.QueueEach(b, []any{&id, &s.Kind, &s.At, &s.Draft}, func() error {
		all[id] = s
		return nil
	}, readSteps, ids, delay, now)
	return all
}

// dueOf is the instant of the next step for the row o of open_periods, or 2⁶³−1 if no step is due.
const dueOf = `
	coalesce((
		SELECT min(s.at) FROM billing_accounts a JOIN customers c ON c.id = a.customer_id,` + stepsOf + `
		WHERE a.customer_id = o.customer_id), 9223372036854775807)`

// unblocked contains assignments that clear the blocked and retry state of a customer. It accompanies each
// write of due_at.
const unblocked = `blocked = NULL, busy_since = NULL, retry_at = 0`

// updateDue sets the instants of the customers' next steps.
const updateDue = `
	UPDATE open_periods o SET ` + unblocked + `, due_at = ` + dueOf + `
	WHERE o.customer_id = ANY ($1::bigint[])`

// UpdateDue sets due_at of customers that the transaction has locked. The customers were already due, so
// their test clocks are already in clock_calls.
func (h *Hooks) UpdateDue(ctx context.Context, tx pgx.Tx, ids ...int64) error {
	now, err := h.Now(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, updateDue, ids, h.closeDelay, now)
	}
	return err
}

const putDue = `
	UPDATE open_periods o SET ` + unblocked + `, due_at = w.due_at
	FROM unnest($1::bigint[], $2::bigint[]) AS w (id, due_at) WHERE o.customer_id = w.id`

// SetDueAt sets due_at of customers to known instants.
func SetDueAt(ctx context.Context, tx pgx.Tx, ids, at []int64) error {
	_, err := tx.Exec(ctx, putDue, ids, at)
	return err
}

// SetDue sets due_at of customers that were not due, and adds their test clocks to clock_calls. Every change
// that affects a customer's next step must call SetDue last.
func (h *Hooks) SetDue(ctx context.Context, tx pgx.Tx, ids ...int64) error {
	now, err := h.Now(ctx)
	if err != nil {
		return err
	}
	b := new(pgx.Batch)
	b.Queue(updateDue, ids, h.closeDelay, now)
	b.Queue(callClocksOf, ids)
	return postgres.Send(ctx, tx, b)
}
