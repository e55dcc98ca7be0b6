package accounts

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/timeline"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
)

// Hooks contains the billing operations that run within writes of customers and test clocks. NewHooks comes
// first, then the store with these Hooks, and then Accounts with both.
type Hooks struct {
	Now        func(ctx context.Context) (int64, error)
	closeDelay int64 // µs
	Versions   *Versions
}

// NewHooks creates the hooks of a node. now returns the database's time, µs since the Unix epoch. closeDelay
// is the time from a period's end to its draft, and must be the same on all nodes.
func NewHooks(now func(ctx context.Context) (int64, error), closeDelay time.Duration) *Hooks {
	return &Hooks{Now: now, closeDelay: closeDelay.Microseconds(), Versions: NewVersions()}
}

// Billing returns the functions that the store calls. The store calls Lock before a write of a customer,
// Running if it needs the terms of the running period, and End for a scheduled change. It calls Changed after
// a write, and ClockSet after a clock was set.
func (h *Hooks) Billing() *store.Billing {
	return &store.Billing{Lock: h.lock, Running: h.running, End: h.scheduledEnd, Changed: h.changed, ClockSet: clockSet}
}

const lockByKey = `
	SELECT o.customer_id FROM open_periods o JOIN customers c ON c.id = o.customer_id WHERE c.key = $1 FOR UPDATE OF o`

// openPeriod reads the customer's open period and whether it has begun. A first period with a later start has
// not begun, unless it has an invoice already.
const openPeriod = `
	SELECT coalesce(o.start_at, 0), coalesce(o.end_at, 0), o.n > 0 OR o.chain > 0
			OR o.start_at <= coalesce(t.now, $2)
			OR EXISTS (SELECT FROM invoices i WHERE i.customer_id = o.customer_id AND i.status <> 'draft'),
		ARRAY(SELECT p->>'meter' FROM jsonb_array_elements(v.document->'prices') p) || ARRAY(SELECT jsonb_object_keys(o.prices))
	FROM open_periods o LEFT JOIN test_clocks t ON t.id = o.clock_id
	LEFT JOIN plan_versions v ON v.plan_id = o.plan_id AND v.version = o.version
	WHERE o.customer_id = $1`

// lock implements store.Billing.Lock.
func (h *Hooks) lock(ctx context.Context, tx pgx.Tx, key string) (*store.Open, error) {
	var id int64
	switch err := tx.QueryRow(ctx, lockByKey, key).Scan(&id); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil //nolint:nilnil // a customer without billing is no error
	case err != nil:
		return nil, err
	}
	now, err := h.Now(ctx)
	if err != nil {
		return nil, err
	}
	open, begun := new(store.Open), (*bool)(nil)
	if err := tx.QueryRow(ctx, openPeriod, id, now).Scan(&open.Start, &open.End, &begun, &open.Meters); err != nil {
		return nil, err
	}
	open.Begun = open.End > 0 && begun != nil && *begun
	return open, nil
}

// standing reads a customer's billing, which w has locked, and its timeline. The customer is nil if it is not
// billed.
func (h *Hooks) standing(ctx context.Context, w *store.Writing, id int64) (*Customer, *timeline.Timeline, error) {
	read, err := ReadCustomers(ctx, w, []int64{id}, w.Now.UnixMicro())
	if err != nil || read[id] == nil {
		return nil, nil, err
	}
	lines, err := Timelines(ctx, w, read)
	return read[id], lines[id], err
}

// running implements store.Billing.Running. The running period may follow the open period, if the open period
// has ended but is not closed yet.
func (h *Hooks) running(ctx context.Context, w *store.Writing, p *plans.Customer, now int64) (*store.Running, error) {
	c, line, err := h.standing(ctx, w, p.ID)
	if err != nil || c == nil || c.Open == nil {
		return nil, err
	}
	running, ok, err := line.At(*c.Open, now)
	if err != nil || !ok {
		return nil, err
	}
	versions, err := h.Versions.Get(ctx, w, VersionsOf(&running))
	if err != nil {
		return nil, err
	}
	terms := versions.Terms(&running)
	return &store.Running{
		Plan: terms.Plan.Key, Version: running.Version, OtherPrices: line.OtherPrices(&running), OtherBase: terms.OtherBase(),
	}, nil
}

const forgetKnown = `UPDATE billing_accounts SET known_from = NULL, known_end = NULL WHERE customer_id = $1`

// changed implements store.Billing.Changed.
func (h *Hooks) changed(ctx context.Context, w *store.Writing, change *store.CustomerChange) error {
	if change.What == store.CustomerNamed {
		return h.enroll(ctx, w, change.Customer, change.Now)
	}
	c, line, err := h.standing(ctx, w, change.Customer.ID)
	if err != nil || c == nil {
		return err
	}
	if change.What == store.CustomerArchived {
		return h.endArchived(ctx, w, c, line, change.Cut)
	}
	if !change.Terms && change.Cut == nil {
		return nil
	}
	if known := c.Account.KnownFrom; change.Cut != nil && known != nil && *known >= *change.Cut {
		c.Account.KnownFrom, c.Account.KnownEnd = nil, nil // that period begins again with the present terms
		if _, err := w.Exec(ctx, forgetKnown, c.ID); err != nil {
			return err
		}
	}
	if err := h.checkTerms(ctx, w, c, change.Now); err != nil {
		return err
	}
	if c.Open == nil {
		return nil
	}
	if err := h.reopen(ctx, w, c, change.From <= c.Open.Start); err != nil {
		return err
	}
	return h.SetDue(ctx, w, c.ID)
}

const noteArchived = `UPDATE billing_accounts SET archived_end = $2 WHERE customer_id = $1`

// endArchived ends the billing of an archived or erased customer at the instant cut, unless billing ended
// earlier.
func (h *Hooks) endArchived(ctx context.Context, w *store.Writing, c *Customer, line *timeline.Timeline, cut *int64) error {
	if cut != nil {
		line.Archived = false // the customer was not archived until now
		c.Account.KnownFrom, c.Account.KnownEnd = c.known(line)
		paid, err := paidAhead(ctx, w, c)
		if err != nil {
			return err
		}
		was := c.Account.EndsAt
		c.endBy(*cut, paid)
		if err := writeAccount(ctx, w, c); err != nil {
			return err
		}
		if !sameInstant(was, c.Account.EndsAt) {
			if _, err := w.Exec(ctx, noteArchived, c.ID, c.Account.EndsAt); err != nil {
				return err
			}
		}
		if c.Open != nil {
			if err := h.reopen(ctx, w, c, false); err != nil {
				return err
			}
		}
	}
	err := h.SetDue(ctx, w, c.ID)
	if err == nil && c.Erased {
		err = ForgetBuyers(ctx, w, c.ID)
	}
	return err
}

// endBy ends billing at an instant, unless it ends earlier. If a test clock was set back, an open period that
// has begun still does not end before its start. If the period's base in advance is paid, the period lasts a
// microsecond, so that its invoice gives the base back.
func (c *Customer) endBy(at int64, paid bool) {
	switch {
	case c.Open == nil:
	case paid:
		at = max(at, c.Open.Start+1)
	case c.n+c.chain > 0:
		at = max(at, c.Open.Start)
	}
	if c.Account.EndsAt == nil || *c.Account.EndsAt > at {
		c.Account.EndsAt, c.Account.EndsWithPeriod = &at, false
	}
}

const planOf = `
	SELECT p.id, v.document->>'currency' FROM plans p JOIN plan_versions v ON v.plan_id = p.id AND v.version = p.latest_version
	WHERE p.key = $1`

const insertAccount = `
	INSERT INTO billing_accounts (customer_id, currency, starts_at, starts_set_at, change) VALUES ($1, $2, $3, $3, $4)`

const insertOpen = `
	INSERT INTO open_periods (customer_id, clock_id, due_at)
	SELECT id, test_clock_id, 9223372036854775807 FROM customers WHERE id = $1`

const second = int64(1e6)

// enroll begins the billing of a customer that was created or named, at the current second.
func (h *Hooks) enroll(ctx context.Context, w *store.Writing, p *plans.Customer, now int64) error {
	var plan int32
	var currency string
	if err := w.QueryRow(ctx, planOf, p.Plan).Scan(&plan, &currency); err != nil {
		return err
	}
	b := new(pgx.Batch)
	b.Queue(insertAccount, p.ID, currency, now-now%second, w.Number)
	b.Queue(insertOpen, p.ID)
	if err := postgres.Send(ctx, w, b); err != nil {
		return err
	}
	c, line, err := h.standing(ctx, w, p.ID)
	if err != nil {
		return err
	}
	if err := h.first(ctx, w, c, line); err != nil {
		return err
	}
	return h.SetDue(ctx, w, c.ID)
}

// first opens the customer's first period. It also reopens that period after starts_at or the trial was
// moved.
func (h *Hooks) first(ctx context.Context, w *store.Writing, c *Customer, line *timeline.Timeline) error {
	if err := writeCuts(ctx, w, c, line); err != nil {
		return err
	}
	p, ok := line.First()
	if err := dropOpening(ctx, w, c, true); err != nil {
		return err
	}
	return writeOpen(ctx, w, c, &p, ok, true, true)
}

// reopen rewrites the open period after a change of its terms or boundaries. If restart is true, the new
// terms apply from the period's start, and a draft of an opening invoice is created again.
func (h *Hooks) reopen(ctx context.Context, w *store.Writing, c *Customer, restart bool) error {
	lines, err := Timelines(ctx, w, map[int64]*Customer{c.ID: c})
	if err != nil {
		return err
	}
	line := lines[c.ID]
	if err := writeCuts(ctx, w, c, line); err != nil {
		return err
	}
	p, ok := line.Again(c.Open, restart)
	due := c.openingDue
	if restart && c.Open.N == 0 {
		if err := dropOpening(ctx, w, c, false); err != nil {
			return err
		}
		// The new terms may require an opening invoice although the former terms did not.
		if err := w.QueryRow(ctx, noOpening, c.ID, c.chain).Scan(&due); err != nil {
			return err
		}
	}
	return writeOpen(ctx, w, c, &p, ok, restart, due)
}

const openingDraft = `
	SELECT id::text FROM invoices WHERE customer_id = $1 AND kind = 'opening' AND status = 'draft' AND chain = $2 AND n = $3
		AND ($4 OR of IS NULL)`

// dropOpening removes the draft of an opening invoice after its period has changed. The charges on the draft
// wait for the next invoice. A reissue keeps the prices of the void opening invoice, and no other opening
// replaces it, so a reissue is removed only if moved is true.
func dropOpening(ctx context.Context, w *store.Writing, c *Customer, moved bool) error {
	var id string
	switch err := w.QueryRow(ctx, openingDraft, c.ID, c.chain, c.n, moved).Scan(&id); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	b := new(pgx.Batch)
	for _, sql := range []string{
		`UPDATE charges SET invoice_id = NULL WHERE invoice_id = $1`,
		`DELETE FROM line_adjustments WHERE invoice_id = $1`,
		`DELETE FROM invoice_lines WHERE invoice_id = $1`,
		`DELETE FROM invoices WHERE id = $1`,
	} {
		b.Queue(sql, id)
	}
	return postgres.Send(ctx, w, b)
}

// countTerms counts the terms that were written since the open period began or that take effect within it.
const countTerms = `
	SELECT (SELECT count(*) FROM customer_terms WHERE customer_id = $1 AND NOT waits AND from_at > 0 AND (limits_at >= $2 OR from_at > $2))
	     + (SELECT count(*) FROM customer_prices WHERE customer_id = $1 AND (at >= $2 OR from_at > $2)),
	       v.document->>'currency', EXISTS (SELECT FROM charges WHERE customer_id = $1) OR EXISTS (SELECT FROM credits WHERE customer_id = $1)
	FROM customers c JOIN plan_versions v ON v.plan_id = c.plan_id AND v.version = c.joined_version WHERE c.id = $1`

const setCurrency = `UPDATE billing_accounts SET currency = $2 WHERE customer_id = $1`

// checkTerms checks terms that were just written. The currency is fixed when the first period begins, or with
// the first charge or credit. Errors: billing.ErrTooManyTerms, billing.ErrCurrency.
func (h *Hooks) checkTerms(ctx context.Context, w *store.Writing, c *Customer, now int64) error {
	since := now
	if c.Open != nil {
		since = c.Open.Start
	}
	var changes int
	var currency string
	var money bool
	if err := w.QueryRow(ctx, countTerms, c.ID, since).Scan(&changes, &currency, &money); err != nil {
		return err
	}
	switch {
	case changes > billing.MaxTerms:
		return billing.ErrTooManyTerms
	case currency == c.Account.Currency:
		return nil
	case money || c.Open == nil || c.n+c.chain > 0 || c.Open.Start <= now:
		return billing.ErrCurrency
	}
	_, err := w.Exec(ctx, setCurrency, c.ID, currency)
	return err
}
