package accounts

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
)

// The kinds of steps, in the order in which those of one instant are done.
const (
	StepBegin    = "begin"
	StepOpening  = "opening"
	StepFinalize = "finalize"
	StepClose    = "close"
	StepExpire   = "expire"
)

// Step is what is to be done next for a customer.
type Step struct {
	Kind  string // "": nothing ever, as things are
	At    int64  // µs by the customer's clock
	Draft string // to be finalized
}

// stepsOf says what is to be done for a customer, and when. $2 is the close delay, µs, which
// nobody waits for who is erased. $3 is PostgreSQL's time. The last period of who is erased is closed
// by now at the latest: it may end just after the last hit, which is later than what a test clock
// shows. The expiry of a credit is booked when all invoices that it could have paid are finalized.
const stepsOf = `
	LATERAL (
		SELECT CASE WHEN c.erased_at IS NULL THEN $2::bigint ELSE 0 END AS delay, c.erased_at IS NOT NULL AS erased,
			coalesce((SELECT t.now FROM test_clocks t WHERE t.id = c.test_clock_id), $3::bigint) AS now
	) w,
	LATERAL (
		SELECT min(CASE kind WHEN 'opening' THEN period_start ELSE period_end END) AS instant
		FROM invoices WHERE customer_id = o.customer_id AND status = 'draft'
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
		SELECT 'expire', e.at, 4, NULL FROM (
			SELECT min(r.expires_at) AS at FROM credits r WHERE r.customer_id = o.customer_id AND r.left_minor > 0 AND r.expires_at <= coalesce(
				least(CASE WHEN o.opening_due THEN o.start_at END, o.end_at, drafts.instant), 9223372036854775807)) e
		WHERE e.at IS NOT NULL
	) s`

const readSteps = `
	SELECT DISTINCT ON (o.customer_id) o.customer_id, s.kind, s.at, coalesce(s.draft::text, '')
	FROM open_periods o JOIN billing_accounts a ON a.customer_id = o.customer_id JOIN customers c ON c.id = o.customer_id,` + stepsOf + `
	WHERE o.customer_id = ANY ($1::bigint[]) ORDER BY o.customer_id, s.at, s.rank`

// QueueSteps reads what is to be done next for customers. Those with nothing to do are left out.
// now is PostgreSQL's time.
func (as *Accounts) QueueSteps(b *pgx.Batch, ids []int64, now int64) map[int64]Step {
	all := make(map[int64]Step, len(ids))
	var id int64
	var s Step
	postgres.QueueEach(b, []any{&id, &s.Kind, &s.At, &s.Draft}, func() error {
		all[id] = s
		return nil
	}, readSteps, ids, as.closeDelay, now)
	return all
}

// dueOf is when the next step is due of the row o of open_periods: 2⁶³−1 where there is none.
const dueOf = `
	coalesce((
		SELECT min(s.at) FROM billing_accounts a JOIN customers c ON c.id = a.customer_id,` + stepsOf + `
		WHERE a.customer_id = o.customer_id), 9223372036854775807)`

// unblocked is what becomes of customers that were put off, when their due_at is set.
const unblocked = `blocked = NULL, busy_since = NULL, retry_at = 0`

// updateDue sets when customers are to be looked at again.
const updateDue = `
	UPDATE open_periods o SET ` + unblocked + `, due_at = ` + dueOf + `
	WHERE o.customer_id = ANY ($1::bigint[])`

// UpdateDue sets due_at of customers whose lock the transaction has. They were due until now, so
// their clocks are called already.
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

// SetDueAt is UpdateDue where the next steps are known.
func SetDueAt(ctx context.Context, tx pgx.Tx, ids, at []int64) error {
	_, err := tx.Exec(ctx, putDue, ids, at)
	return err
}

// SetDue is UpdateDue for customers that were not due, and calls their clocks. Whatever changes
// what is to be done for a customer calls it last.
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
