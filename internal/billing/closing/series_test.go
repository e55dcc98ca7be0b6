package closing

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/invoices"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
	"quotad/internal/testkit/quotatest"
)

// Customers on test clocks are numbered in a series of their own. Nodes finalize in both at once,
// and neither has a gap.
func TestSeriesOfTestClocks(t *testing.T) {
	const each = 12
	url := pgtest.NewDatabase(t)
	clock := quotatest.NewClock(time.Now().UnixMicro())
	one, two := nodeBy(t, url, clock.Now), nodeBy(t, url, clock.Now)
	planstest.Declare(t, one.store, "api")
	one.plan("pro", 2000, `[{"meter":"api","model":"per_unit","unit_price":"0.01"}]`)
	planstest.SetClock(t, one.store, "clock", "2026-01-01T00:00:00Z")
	_, _, err := one.accounts.PutSeller(t.Context(), accounts.SellerInput{Seller: billing.Seller{Key: "default", Name: "Us", Prefix: "P-"}}, planstest.AnyVersion)
	one.check(err)
	var test, live []int64
	for n := range each {
		test = append(test, one.customer(fmt.Sprintf("test-%d", n), "pro"))
		live = append(live, planstest.PutCustomer(t, one.store, fmt.Sprintf("live-%d", n), planstest.OnPlan("pro")).ID)
	}
	clock.Set(pgtest.Query[int64](t, url, `SELECT max(end_at) FROM open_periods WHERE clock_id IS NULL`) + 10e6)
	planstest.SetClock(t, one.store, "clock", "2026-02-01T00:00:10Z")
	testkit.Eventually(t, "all are drafted", func() bool {
		one.check(one.worker.WorkOff(t.Context()))
		return planstest.Count(t, one.store, `count(*) FROM invoices WHERE status = 'draft'`) == 2*each
	})
	ended := make(chan error, 2*each)
	for n := range each {
		for m, id := range []int64{test[n], live[n]} {
			on := []*world{one, two}[(n+m)%2]
			draft := one.stored(id)[0].ID
			go func() {
				_, err := on.invoices.Finalize(t.Context(), draft)
				ended <- err
			}()
		}
	}
	for range 2 * each {
		one.check(<-ended)
	}
	for prefix, ids := range map[string][]int64{"TEST-P-": test, "P-": live} {
		var got, want []string
		for n, id := range ids {
			got, want = append(got, one.numbered(id)...), append(want, fmt.Sprintf("%s%d", prefix, n+1))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	// A note has its customer's series.
	invoice := one.stored(test[0])[0].ID
	note, _, err := two.invoices.CreditNote(t.Context(), invoice, assembly.NoteRequest{
		Lines: []assembly.NoteLine{{N: 1, AmountMinor: 10}}, Reason: "an outage", To: assembly.Outside,
	}, "note", 1)
	if err != nil || note.Number != fmt.Sprintf("TEST-P-%d", each+1) {
		t.Errorf("the note: %+v, %v", note, err)
	}
	for _, f := range []struct {
		invoices.Filter
		want int
	}{
		{invoices.Filter{}, each},
		{invoices.Filter{TestClock: "clock"}, each + 1},
		{invoices.Filter{TestClock: invoices.AnyClock}, 2*each + 1},
		{invoices.Filter{Customer: "test-0"}, 0},
		{invoices.Filter{Customer: "test-0", TestClock: invoices.AnyClock}, 2},
		{invoices.Filter{Customer: "live-0", TestClock: "clock"}, 0},
	} {
		list, err := one.invoices.Invoices(t.Context(), f.Filter, plans.Page{})
		if err != nil || len(list.Items) != f.want {
			t.Errorf("%+v: %v, %v", f, list, err)
		}
	}
	if _, err := one.invoices.Invoices(t.Context(), invoices.Filter{TestClock: "nothing"}, plans.Page{}); !errors.Is(err, plans.ErrUnknownClock) {
		t.Errorf("an unknown clock: %v", err)
	}
}

// toSell writes the seller that all customers have.
func (w *world) toSell(prefix, notes string, next *int64) (*accounts.Seller, error) {
	s, _, err := w.accounts.PutSeller(w.Context(), accounts.SellerInput{
		Seller: billing.Seller{Key: "default", Name: "Us", Prefix: prefix}, CreditNotePrefix: notes, NextNumber: next,
	}, planstest.AnyVersion)
	return s, err
}

// given are the numbers of a prefix, in order, and what is left out of them.
func (w *world) given(prefix string) (all []int64) {
	return pgtest.Query[[]int64](w, w.url, `SELECT coalesce(array_agg(number ORDER BY number), '{}') FROM invoices WHERE prefix = '`+prefix+`'`)
}

// A new prefix begins at 1, one that the seller had goes on, and notes with a prefix of their own are a
// series of their own. The next number may only rise.
func TestEachPrefixIsASeries(t *testing.T) {
	w, clock := newBilled(t, pgtest.NewDatabase(t), 8, 1)
	finalized := func(n int64) {
		t.Helper()
		testkit.Eventually(t, "a number is given", func() bool {
			clock.Set(clock.At.Load() + 3600e6)
			w.check(w.worker.WorkOff(t.Context()))
			return planstest.Count(t, w.store, `count(*) FROM invoices WHERE number IS NOT NULL AND kind <> 'credit_note'`) >= n
		})
	}
	// Drafts of all are finalized by hand, a few with each prefix.
	w.check(w.worker.WorkOff(t.Context()))
	var drafts []string
	testkit.Eventually(t, "all are drafted", func() bool {
		clock.Set(clock.At.Load() + 1e6)
		w.check(w.worker.WorkOff(t.Context()))
		drafts = pgtest.Query[[]string](t, w.url, `SELECT coalesce(array_agg(id::text ORDER BY id), '{}') FROM invoices WHERE status = 'draft'`)
		return len(drafts) == 8
	})
	next := 0
	finalize := func(want string) string {
		t.Helper()
		i, err := w.invoices.Finalize(t.Context(), drafts[next])
		w.check(err)
		if i.Number != want {
			t.Errorf("%s, want %s", i.Number, want)
		}
		next++
		return i.ID
	}
	notes := 0
	credit := func(invoice, want string) {
		t.Helper()
		notes++
		note, _, err := w.invoices.CreditNote(t.Context(), invoice, assembly.NoteRequest{
			Lines: []assembly.NoteLine{{N: 1, AmountMinor: 1}}, Reason: "an outage", To: assembly.Outside,
		}, fmt.Sprint("note-", notes), 1)
		if err != nil || note.Number != want {
			t.Errorf("the note %+v, %v, want %s", note, err, want)
		}
	}
	sold := func(prefix, notes string, next *int64, want int64) {
		t.Helper()
		if s, err := w.toSell(prefix, notes, next); err != nil || s.NextNumber != want {
			t.Fatalf("%q, %q: %+v, %v, want next number %d", prefix, notes, s, err, want)
		}
	}
	refused := func(prefix, notes string, next *int64, field string) {
		t.Helper()
		var bad model.FieldErrors
		if s, err := w.toSell(prefix, notes, next); !errors.As(err, &bad) || bad[0].Field != field {
			t.Errorf("%q, %q: %+v, %v, want a fault of %s", prefix, notes, s, err, field)
		}
	}
	sold("A", "", nil, 1)
	first := finalize("A1")
	credit(first, "A2")
	sold("B-", "N-", nil, 1)
	finalize("B-1")
	credit(first, "N-1")
	credit(first, "N-2")
	refused("B-", "N-", new(int64(1)), "next_number")
	sold("B-", "N-", new(int64(2)), 2)
	sold("B-", "N-", new(int64(10)), 10)
	refused("B-", "N-", new(int64(9)), "next_number")
	finalize("B-10")
	finalize("B-11")
	sold("A", "B-", nil, 3) // notes go on with the former prefix of invoices
	credit(first, "B-12")
	finalize("A3")
	sold("C-", "N-", new(int64(100)), 100) // a new prefix may begin later
	finalize("C-100")
	credit(first, "N-3")
	sold("C-", "", nil, 101)
	credit(first, "C-101")
	sold("N-", "", nil, 4) // invoices go on with the former prefix of notes
	finalize("N-4")
	refused("A1", "", nil, "prefix")                // A gave A1
	refused("N-", "A22", nil, "credit_note_prefix") // A22 might be of A, too
	refused("N-", "N-1", nil, "credit_note_prefix")
	refused("N-", "N-", nil, "credit_note_prefix")
	refused("N-", "TEST-N", nil, "credit_note_prefix")
	sold("N-", "A02", nil, 5) // integers do not begin with 0
	sold("Never", "", nil, 1)
	sold("Never1", "", nil, 1) // no number was given of Never
	finalized(8)
	if got := w.given("B-"); !slices.Equal(got, []int64{1, 10, 11, 12}) {
		t.Errorf("numbers of B-: %v", got)
	}
}

// Nodes finalize and make notes while an admin gives the seller other prefixes and numbers. No number
// is given twice, and only what next_number skipped is left out.
func TestSeriesUnderEdits(t *testing.T) {
	const customers = 30
	url := pgtest.NewDatabase(t)
	one, clock := newBilled(t, url, customers, 1)
	two := nodeBy(t, url, clock.Now)
	_, err := one.toSell("A-", "", nil)
	one.check(err)
	var drafts []string
	testkit.Eventually(t, "all are drafted", func() bool {
		clock.Set(clock.At.Load() + 1e6)
		one.check(one.worker.WorkOff(t.Context()))
		drafts = pgtest.Query[[]string](t, url, `SELECT coalesce(array_agg(id::text ORDER BY id), '{}') FROM invoices WHERE status = 'draft'`)
		return len(drafts) == customers
	})
	ended := make(chan error, 2)
	for n, on := range []*world{one, two} {
		go func() {
			var err error
			for i := n; i < customers && err == nil; i += 2 {
				var final *billing.Invoice
				if final, err = on.invoices.Finalize(t.Context(), drafts[i]); err == nil {
					_, _, err = on.invoices.CreditNote(t.Context(), final.ID, assembly.NoteRequest{
						Lines: []assembly.NoteLine{{N: 1, AmountMinor: 1}}, Reason: "an outage", To: assembly.Outside,
					}, "note", 1)
				}
			}
			ended <- err
		}()
	}
	left, edits, raised := 2, 0, []int64{}
	for left > 0 {
		select {
		case err := <-ended:
			one.check(err)
			left--
		default:
			edits++
			s, err := one.toSell([]string{"A-", "B-", "C-"}[edits%3], []string{"", "N-"}[edits%2], nil)
			one.check(err)
			if edits%4 == 0 {
				next := s.NextNumber + 1000
				if s, err = two.toSell(s.Prefix, s.CreditNotePrefix, &next); err == nil {
					raised = append(raised, s.NextNumber)
				}
			}
		}
	}
	if edits < 6 || len(raised) == 0 {
		t.Fatalf("only %d edits, and %d skips", edits, len(raised))
	}
	if n := planstest.Count(t, one.store, `count(DISTINCT prefix || number) FROM invoices WHERE number IS NOT NULL`); n != 2*customers {
		t.Errorf("%d numbers, want %d", n, 2*customers)
	}
	const gaps = `count(*) FROM (SELECT prefix, number, lag(number, 1, 0::bigint) OVER (PARTITION BY prefix ORDER BY number) AS before FROM invoices WHERE number IS NOT NULL) g
		WHERE number <> before + 1 AND NOT EXISTS (SELECT FROM seller_skips s WHERE s.prefix = g.prefix AND s.number = g.number)`
	if n := planstest.Count(t, one.store, gaps); n != 0 {
		t.Errorf("%d gaps that nobody asked for", n)
	}
	if n := planstest.Count(t, one.store, `count(DISTINCT prefix) FROM invoices WHERE number IS NOT NULL`); n < 3 {
		t.Errorf("numbers of only %d prefixes", n)
	}
}

// A prefix that begins as the numbers of test clocks do, to the eye, is mistaken for theirs, or could give
// one of them again.
func TestPrefixesOfTestClocksAreRefused(t *testing.T) {
	w := newWorld(t)
	for prefix, want := range map[string]bool{
		"TEST-": false, "TEST-A": false, "TEST": false, "test-": false, "Test1": false, " TEST-": false, "tEsT/": false, "TEST A": false, "TEST\u0301-": false,
		"\u200bTEST-": false, "TE\u2060ST-": false, "\ufeff test": false, "ＴＥＳＴ-": false, "𝐓𝐄𝐒𝐓-": false, "\u00a0": false, "\u200b": false,
		"A-TEST-": true, "TESTA": true, "Testing-": true, "TESTÉ": true, "T EST": true, "TES": true, "INV-": true, " \u00a0TESTS- ": true, "": true,
	} {
		_, _, err := w.accounts.PutSeller(t.Context(), accounts.SellerInput{Seller: billing.Seller{Key: "us", Name: "Us", Prefix: prefix}}, plans.Precondition{})
		if (err == nil) != want {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}
