package invoices

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/rating"
	"quotad/internal/billing/timeline"
	"quotad/internal/plans"
	"quotad/internal/postgres"
	"quotad/internal/quota/model"
	"quotad/internal/quota/usage"
)

// Task is one invoice that is to be assembled: a new one, a draft again, or an upcoming one.
type Task struct {
	Period billing.Period  // that the invoice is of
	Next   *billing.Period // that follows, of this chain or of the next one; nil: none
	Result assembly.Result
	Err    error // why it cannot be assembled, which concerns this customer only

	c     *accounts.Customer
	kind  string
	at    int64 // when it is made or finalized
	draft *billing.Invoice
	in    assembly.Input
	// fresh: charges and corrections that no invoice has taken yet go onto it.
	fresh bool
	fixed []billing.Line // see assembly.Input.Fixed
	// counted are the adjustments that lines count: of usage by their meter, of corrections by
	// the corrected invoice, too.
	counted map[countedBy]counted
}

// PeriodTask is the invoice of a period, made at an instant. What no invoice has taken goes onto it.
func PeriodTask(c *accounts.Customer, line *timeline.Timeline, period *billing.Period, at int64) *Task {
	t := &Task{c: c, kind: billing.KindPeriod, Period: *period, fresh: true, at: at}
	if next, ok := line.Next(period); ok {
		t.Next = &next
	}
	line.Close(&t.Period, t.Next)
	return t
}

// OpeningTask is the opening invoice of a customer's open period, made at an instant.
func OpeningTask(c *accounts.Customer, at int64) *Task {
	return &Task{c: c, kind: billing.KindOpening, Period: *c.Open, fresh: true, at: at}
}

// ExtraTask is the invoice of what came when billing was over, made at an instant. end is the end of the
// chain, see accounts.ChainEnds.
func ExtraTask(c *accounts.Customer, end *billing.Period, at int64) *Task {
	return &Task{c: c, kind: billing.KindPeriod, Period: *end, fresh: true, at: at}
}

// DraftTask is a stored draft that is to be finalized at an instant.
func DraftTask(c *accounts.Customer, id string, at int64) *Task {
	return &Task{c: c, draft: &billing.Invoice{ID: id}, at: at}
}

// ofPeriod reports whether the invoice bills a period.
func (t *Task) ofPeriod() bool { return t.kind == billing.KindPeriod && !t.Period.Extra() }

func (t *Task) failed() bool { return t.Err != nil }

// Empty reports whether no invoice is to be made. Only a base that is due in advance makes an opening:
// without one the invoice of the period itself takes charges and corrections.
func (t *Task) Empty() bool {
	return t.Result.Empty || t.kind == billing.KindOpening && t.in.Terms.AdvanceBase(t.Period.BaseOf().To) == 0
}

// countedBy names a line. invoice is the corrected one, "" for a line of usage.
type countedBy struct{ meter, invoice string }

// counted are adjustments of a meter.
type counted struct {
	meter int32
	adj   []usage.Adjustment
}

// Assemble fills in the results of tasks. Reads of one snapshot make invoices of one instant.
func (is *Invoices) Assemble(ctx context.Context, q postgres.Querier, tasks []*Task) error {
	err := is.readInputs(ctx, q, tasks)
	if err == nil {
		for _, t := range tasks {
			t.compute()
		}
	}
	return err
}

// readInputs reads what tasks are computed from, with a few statements for all of them.
func (is *Invoices) readInputs(ctx context.Context, q postgres.Querier, tasks []*Task) error {
	if len(tasks) == 0 {
		return nil
	}
	for _, t := range tasks {
		t.in = assembly.Input{
			Kind: t.kind, At: cmp.Or(t.at, t.c.Now), Account: &t.c.Account, Fixed: t.fixed, Usage: make(map[string]int64),
			Levels: make(map[string]rating.Held),
		}
		t.counted = make(map[countedBy]counted)
	}
	if err := is.readTerms(ctx, q, tasks); err != nil {
		return err
	}
	b := new(pgx.Batch)
	queueMeters(b, tasks)
	late, goneOn := queueCorrections(b, tasks), queueGoneOn(b, tasks)
	for _, queue := range []func(*pgx.Batch, []*Task){queueAdvances, queueCharges, queueSellers, queueCreditsLeft} {
		queue(b, tasks)
	}
	if err := postgres.Send(ctx, q, b); err != nil {
		return err
	}
	if err := errors.Join(is.addCorrections(ctx, q, late), is.addGoneOn(ctx, q, *goneOn)); err != nil {
		return err
	}
	return is.readUsage(ctx, q, tasks)
}

// compute makes the invoice of what was read.
func (t *Task) compute() {
	if t.Result, t.Err = assembly.Assemble(t.in); t.Err != nil {
		return
	}
	t.Result.Invoice.CustomerKey, t.Result.Invoice.TestClock, t.Result.Invoice.Zone = t.c.Key, t.c.Clock, t.c.Zone
	if t.draft != nil {
		keep(&t.Result.Invoice, t.draft)
		holdNameless(&t.Result.Invoice)
	}
}

// holdNameless holds a draft whose seller has no name. It is finalized by itself once it has one,
// see accounts/naming.go.
func holdNameless(i *billing.Invoice) {
	if i.Seller.Name == "" {
		i.Held = strings.TrimLeft(i.Held+" "+billing.NamelessSeller(i.Seller.Key), " ")
	}
}

// keep gives an invoice that was assembled again what its draft is known by.
func keep(i, draft *billing.Invoice) {
	i.ID, i.Of, i.OfNumber, i.MadeAt, i.FinalizeAt, i.CustomerKey = draft.ID, draft.Of, draft.OfNumber, draft.MadeAt, draft.FinalizeAt, draft.CustomerKey
	i.PeriodStart, i.PeriodEnd, i.PlanID, i.PriceVersion = draft.PeriodStart, draft.PeriodEnd, draft.PlanID, draft.PriceVersion
}

// readTerms finds what prices the tasks' periods.
func (is *Invoices) readTerms(ctx context.Context, q postgres.Querier, tasks []*Task) error {
	var keys []accounts.VersionKey
	for _, t := range tasks {
		keys = append(keys, accounts.VersionsOf(&t.Period)...)
		if t.Next != nil {
			keys = append(keys, accounts.VersionsOf(t.Next)...)
		}
	}
	versions, err := is.accounts.Versions.Get(ctx, q, keys)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		t.in.Terms = versions.Terms(&t.Period)
		if t.Next != nil && t.Next.Chain == t.Period.Chain { // another chain has an opening
			next := versions.Terms(t.Next)
			t.in.Next = &next
		}
	}
	return nil
}

// readUsage sums the usage of the priced meters.
func (is *Invoices) readUsage(ctx context.Context, q postgres.Querier, tasks []*Task) error {
	type place struct {
		t     *Task
		meter string
	}
	var spans, levels []usage.Span
	var places, held []place
	for _, t := range tasks {
		if !t.ofPeriod() {
			continue
		}
		ids, err := is.accounts.PricedMeters(ctx, q, &t.in.Terms)
		if err != nil {
			return err
		}
		for _, meter := range t.in.Terms.Meters() {
			span := usage.Span{Customer: t.c.ID, Meter: ids[meter], Start: t.Period.Start, End: t.Period.End}
			if model.IsLevel(span.Meter) {
				levels, held = append(levels, span), append(held, place{t, meter})
			} else {
				spans, places = append(spans, span), append(places, place{t, meter})
			}
		}
	}
	if len(levels) > 0 {
		all, err := usage.Levels(ctx, q, levels)
		if err != nil {
			return err
		}
		for i, p := range held {
			p.t.in.Levels[p.meter] = rating.Held(all[i])
		}
	}
	sums, err := used(ctx, q, spans)
	if err != nil {
		return err
	}
	for i, p := range places {
		p.t.in.Usage[p.meter] = sums[i].Units
		if len(sums[i].Adjustments) > 0 {
			p.t.counted[countedBy{meter: p.meter}] = counted{spans[i].Meter, sums[i].Adjustments}
		}
	}
	return nil
}

const readMeterNames = `SELECT id, key, name, unit FROM meters WHERE key = ANY ($1)`

// queueMeters finds what the meters of the tasks' terms are called.
func queueMeters(b *pgx.Batch, tasks []*Task) {
	var keys []string
	all := make(map[string]plans.Meter)
	for _, t := range tasks {
		t.in.Meters, keys = all, append(keys, t.in.Terms.Meters()...)
	}
	if len(keys) == 0 {
		return
	}
	slices.Sort(keys)
	var m plans.Meter
	postgres.QueueEach(b, []any{&m.ID, &m.Key, &m.Name, &m.Unit}, func() error {
		all[m.Key] = m
		return nil
	}, readMeterNames, slices.Compact(keys))
}

const readSellerRows = `SELECT ` + accounts.PaperColumns + ` FROM sellers WHERE key = ANY ($1)`

// queueSellers finds the sellers as they are now.
func queueSellers(b *pgx.Batch, tasks []*Task) {
	of := make(map[string][]*Task)
	for _, t := range tasks {
		of[t.c.Account.Seller] = append(of[t.c.Account.Seller], t)
	}
	var s billing.Seller
	postgres.QueueEach(b, accounts.OnPaper(&s), func() error {
		for _, t := range of[s.Key] {
			t.in.Seller = s
		}
		s = billing.Seller{}
		return nil
	}, readSellerRows, slices.Collect(maps.Keys(of)))
}

// Charges of one instant come in the order of seq.
const readUnclaimed = `
	SELECT customer_id, id, description, amount_minor, currency, at FROM charges
	WHERE customer_id = ANY ($1) AND invoice_id IS NULL ORDER BY customer_id, at, seq`

// queueCharges finds the charges that no invoice has taken yet.
func queueCharges(b *pgx.Batch, tasks []*Task) {
	of := freshTasks(tasks)
	if len(of) == 0 {
		return
	}
	var id int64
	var c billing.Charge
	postgres.QueueEach(b, []any{&id, &c.ID, &c.Description, &c.AmountMinor, &c.Currency, &c.At}, func() error {
		of[id].in.Charges = append(of[id].in.Charges, c)
		return nil
	}, readUnclaimed, slices.Collect(maps.Keys(of)))
}

// queueCreditsLeft finds the credits that have something left.
func queueCreditsLeft(b *pgx.Batch, tasks []*Task) {
	of := make(map[int64][]*Task)
	for _, t := range tasks {
		of[t.c.ID] = append(of[t.c.ID], t)
	}
	var id int64
	var c billing.Credit
	postgres.QueueEach(b, []any{&id, &c.ID, &c.Kind, &c.AmountMinor, &c.LeftMinor, &c.Currency, &c.Priority, &c.ExpiresAt, &c.At, &c.Seq}, func() error {
		for _, t := range of[id] {
			t.in.Credits = append(t.in.Credits, c)
		}
		return nil
	}, creditsLeft, slices.Collect(maps.Keys(of)))
}

// queueAdvances finds the base lines of the tasks' periods that earlier invoices hold.
func queueAdvances(b *pgx.Batch, tasks []*Task) {
	var of []accounts.Holder
	for _, t := range tasks {
		if !t.ofPeriod() {
			continue
		}
		of = append(of, accounts.Holder{Customer: t.c.ID, Terms: &t.in.Terms, Into: &t.in.Held})
	}
	accounts.QueueHeld(b, of)
}
