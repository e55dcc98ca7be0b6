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

// Task is the assembly of one invoice: a new invoice, a stored draft or an upcoming invoice.
type Task struct {
	Period billing.Period  // the invoice's period
	Next   *billing.Period // the next period, of this chain or the next chain; nil if no period follows
	Result assembly.Result
	Err    error // an assembly error, which concerns this customer only

	c     *accounts.Customer
	kind  string
	at    int64 // instant of creation or finalization
	draft *billing.Invoice
	in    assembly.Input
	// fresh reports that the invoice includes all charges and corrections that are on no invoice yet.
	fresh bool
	fixed []billing.Line // see assembly.Input.Fixed
	// counted contains the adjustments that each line includes. The key of a usage line is its meter. The key
	// of a correction also has the corrected invoice.
	counted map[countedBy]counted
}

// PeriodTask returns the task for the invoice of a period, created at an instant. The invoice includes all
// items that are on no invoice yet.
func PeriodTask(c *accounts.Customer, line *timeline.Timeline, period *billing.Period, at int64) *Task {
	t := &Task{c: c, kind: billing.KindPeriod, Period: *period, fresh: true, at: at}
	if next, ok := line.Next(period); ok {
		t.Next = &next
	}
	line.Close(&t.Period, t.Next)
	return t
}

// OpeningTask returns the task for the opening invoice of a customer's open period, created at an instant.
func OpeningTask(c *accounts.Customer, at int64) *Task {
	return &Task{c: c, kind: billing.KindOpening, Period: *c.Open, fresh: true, at: at}
}

// ExtraTask returns the task for an extra invoice, created at an instant. An extra invoice contains items
// that arrived after billing was over. end is the end of the chain, see accounts.ChainEnds.
func ExtraTask(c *accounts.Customer, end *billing.Period, at int64) *Task {
	return &Task{c: c, kind: billing.KindPeriod, Period: *end, fresh: true, at: at}
}

// DraftTask returns the task that finalizes a stored draft at an instant.
func DraftTask(c *accounts.Customer, id string, at int64) *Task {
	return &Task{c: c, draft: &billing.Invoice{ID: id}, at: at}
}

// ofPeriod reports whether the invoice bills a period.
func (t *Task) ofPeriod() bool { return t.kind == billing.KindPeriod && !t.Period.Extra() }

func (t *Task) failed() bool { return t.Err != nil }

// Empty reports whether no invoice is needed. An opening invoice needs a base that is due in advance. Without
// such a base, the invoice of the period itself contains the charges and corrections.
func (t *Task) Empty() bool {
	return t.Result.Empty || t.kind == billing.KindOpening && t.in.Terms.AdvanceBase(t.Period.BaseOf().To) == 0
}

// countedBy identifies a line. invoice is the corrected invoice, or "" for a usage line.
type countedBy struct{ meter, invoice string }

// counted contains adjustments of a meter.
type counted struct {
	meter int32
	adj   []usage.Adjustment
}

// Assemble computes the invoices of tasks. All invoices show the same instant if q reads from one snapshot.
func (is *Invoices) Assemble(ctx context.Context, q postgres.Querier, tasks []*Task) error {
	err := is.readInputs(ctx, q, tasks)
	if err == nil {
		for _, t := range tasks {
			t.compute()
		}
	}
	return err
}

// readInputs reads the inputs of tasks, with a few statements for all of them.
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

// compute assembles the invoice from the input.
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

// holdNameless holds a draft whose seller has no name. The draft is finalized automatically once the seller
// has a name, see accounts/naming.go.
func holdNameless(i *billing.Invoice) {
	if i.Seller.Name == "" {
		i.Held = strings.TrimLeft(i.Held+" "+billing.NamelessSeller(i.Seller.Key), " ")
	}
}

// keep copies the fields that identify a draft to the reassembled invoice.
func keep(i, draft *billing.Invoice) {
	i.ID, i.Of, i.OfNumber, i.MadeAt, i.FinalizeAt, i.CustomerKey = draft.ID, draft.Of, draft.OfNumber, draft.MadeAt, draft.FinalizeAt, draft.CustomerKey
	i.PeriodStart, i.PeriodEnd, i.PlanID, i.PriceVersion = draft.PeriodStart, draft.PeriodEnd, draft.PlanID, draft.PriceVersion
}

// readTerms reads the pricing terms of the tasks' periods.
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
		if t.Next != nil && t.Next.Chain == t.Period.Chain { // a new chain has an opening invoice
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

// queueMeters queues the read of the meters in the tasks' terms.
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

// queueSellers queues the read of the sellers in their present state.
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

// readUnclaimed reads charges that are on no invoice. Charges of one instant are in the order of seq.
const readUnclaimed = `
	SELECT customer_id, id, description, amount_minor, currency, at FROM charges
	WHERE customer_id = ANY ($1) AND invoice_id IS NULL ORDER BY customer_id, at, seq`

// queueCharges queues the read of charges that are on no invoice yet.
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

// queueCreditsLeft queues the read of credits with a remaining amount.
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

// queueAdvances queues the read of base prices that earlier invoices charged in advance for the tasks'
// periods.
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
