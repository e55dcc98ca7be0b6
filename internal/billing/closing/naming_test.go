package closing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/invoices"
	"quotad/internal/plans"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// nameless takes the default seller's name, which no API can.
func (w *world) nameless() {
	w.Helper()
	pgtest.Exec(w, w.url, `UPDATE sellers SET name = '' WHERE key = 'default'`)
}

// named writes a seller.
func (w *world) named(key, name string) {
	w.Helper()
	_, _, err := w.accounts.PutSeller(w.Context(), accounts.SellerInput{Seller: billing.Seller{Key: key, Name: name}}, plans.Precondition{})
	w.check(err)
}

// numbered are the numbers of a customer's invoices, "draft" where there is none.
func (w *world) numbered(customer int64) (all []string) {
	w.Helper()
	for _, i := range w.stored(customer) {
		if i.Number == "" {
			i.Number = i.Status
		}
		all = append(all, i.Number)
	}
	return all
}

// waitingDrafts counts drafts that wait for a name.
func (w *world) waitingDrafts() int {
	w.Helper()
	return pgtest.Query[int](w, w.url, `SELECT count(*) FROM invoices WHERE status = 'draft' AND held IS NOT NULL AND document #>> '{seller,name}' = ''`)
}

// An invoice whose seller has no name is held and says what to do. It does not come to be due by
// itself, later periods go on, and it is finalized when the seller has a name.
func TestInvoicesWaitForTheSellersName(t *testing.T) {
	w, id := begun(t)
	w.nameless()
	w.clock("2026-02-01T00:00:10Z")
	draft, err := w.invoices.Invoice(t.Context(), w.stored(id)[0].ID)
	w.check(err)
	if !strings.Contains(draft.Held, "default") || !strings.Contains(draft.Held, "PUT /v1/sellers/default") || draft.AmountDueMinor != 2000 {
		t.Errorf("a new draft: held %q, due %d", draft.Held, draft.AmountDueMinor)
	}
	w.clock("2026-03-01T01:00:10Z")
	if got := w.numbered(id); !slices.Equal(got, []string{"draft", "draft"}) || w.waitingDrafts() != 2 {
		t.Errorf("%q, and %d wait", got, w.waitingDrafts())
	}
	if due := pgtest.Query[int64](t, w.url, `SELECT due_at FROM open_periods`); due != planstest.Instant("2026-04-01T00:00:10Z") {
		t.Errorf("it is due at %d", due)
	}
	_, err = w.invoices.Finalize(t.Context(), draft.ID)
	if !errors.Is(err, billing.ErrHeld) || !strings.Contains(err.Error(), "PUT /v1/sellers/default") {
		t.Errorf("finalize: %v", err)
	}
	upcoming, err := w.invoices.Upcoming(t.Context(), "acme")
	if err != nil || upcoming.Held != "" {
		t.Errorf("the upcoming invoice: held %q, %v", upcoming.Held, err)
	}
	w.named("default", "Us")
	w.workOff()
	all := w.stored(id)
	for n, i := range all {
		if i.Number != fmt.Sprintf("TEST-%d", n+1) || i.Held != "" || i.Seller.Name != "Us" || *i.FinalizedAt != planstest.Instant("2026-03-01T01:00:10Z") {
			t.Errorf("%+v", i)
		}
	}
	if n := planstest.Count(t, w.store, `count(*) FROM seller_calls`); len(all) != 2 || n != 0 {
		t.Errorf("%d invoices, and %d calls are left", len(all), n)
	}
}

// A draft that was too large when it was made has its own time. The seller's name does not finalize
// it before.
func TestANameDoesNotHurryDrafts(t *testing.T) {
	w := newWorld(t)
	planstest.Declare(t, w.store, "api")
	w.plan("pro", 2000, `[{"meter":"api","model":"per_unit","unit_price":"1000000"}]`)
	planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
	id := w.customer("dear", "pro")
	w.nameless()
	w.clock("2026-01-10T00:00:00Z")
	w.hit("dear", "api", 10_000_000) // 10¹⁵ minor units
	w.clock("2026-02-01T00:00:10Z")
	if n := w.waitingDrafts(); n != 1 {
		t.Fatalf("%d drafts wait", n)
	}
	w.adjust("dear", "api", "2026-01-10T00:00:00Z", -9_999_999, "less")
	w.named("default", "Us")
	w.workOff()
	if got := w.numbered(id); !slices.Equal(got, []string{"draft"}) {
		t.Errorf("before its time: %q", got)
	}
	w.clock("2026-02-01T01:00:10Z")
	if got := w.numbered(id); !slices.Equal(got, []string{"TEST-1"}) {
		t.Errorf("at its time: %q", got)
	}
}

// A step that holds a draft locks its seller. So the batch ends with it, and no period is closed
// under that lock: closing takes counters.
func TestABatchEndsWhenADraftIsHeld(t *testing.T) {
	w, _ := begun(t)
	w.nameless()
	planstest.SetClock(t, w.store, "clock", "2026-03-01T01:00:10Z")
	const held = `SELECT count(*) FROM invoices WHERE finalize_at = 9223372036854775807`
	for pgtest.Query[int](t, w.url, held) == 0 {
		if taken, err := w.worker.batch(t.Context(), 1); err != nil || taken != 1 {
			t.Fatalf("%d customers, %v", taken, err)
		}
	}
	if n := pgtest.Query[int](t, w.url, `SELECT count(*) FROM periods`); n != 1 {
		t.Errorf("%d periods are closed in the batch that held a draft", n)
	}
}

// A draft that waits is finalized when its customer gets a seller that has a name, too.
func TestAnotherSellerHasAName(t *testing.T) {
	w, id := begun(t)
	w.nameless()
	w.named("us", "Us")
	w.clock("2026-02-01T01:00:10Z")
	in := &accounts.AccountInput{Seller: "us", DueDays: 14}
	_, err := w.accounts.PutAccount(t.Context(), "acme", in, planstest.AnyVersion)
	w.check(err)
	w.workOff()
	if got := w.stored(id); len(got) != 1 || got[0].Seller.Key != "us" || got[0].Number != "TEST-1" {
		t.Errorf("%+v", got[0])
	}
}

// Erasing a customer goes on while its seller has no name. The draft stays, with the buyer, and
// both are done when there is one.
func TestErasedBesideANamelessSeller(t *testing.T) {
	w, id := begun(t)
	w.nameless()
	w.bought("acme")
	w.clock("2026-01-10T00:00:00Z")
	_, err := w.store.EraseCustomer(t.Context(), "acme")
	w.check(err)
	w.workOff()
	if got := w.numbered(id); !slices.Equal(got, []string{"draft"}) || w.buyer(id) == "" {
		t.Errorf("%q, bought by %q", got, w.buyer(id))
	}
	w.named("default", "Us")
	w.workOff()
	if got := w.stored(id); len(got) != 1 || got[0].Number != "TEST-1" || got[0].Buyer.Name != "Ada Lovelace" || w.buyer(id) != "" {
		t.Errorf("%+v, account's buyer %q", got[0], w.buyer(id))
	}
}

// Many drafts wait. None is looked at before the name is there, and then all are made due, some at
// a time. Those of a customer that somebody else works on are not forgotten.
func TestManyWaitForAName(t *testing.T) {
	const customers = 23
	w, clock := newBilled(t, pgtest.NewDatabase(t), customers, 1)
	w.worker.wakeAtOnce = 5
	w.nameless()
	work := func(seconds int64) {
		clock.Set(clock.At.Load() + seconds*1e6)
		w.check(w.worker.WorkOff(w.Context()))
	}
	testkit.Eventually(t, "all wait", func() bool {
		work(3600)
		return w.waitingDrafts() == customers
	})
	if n := pgtest.Query[int](t, w.url, `SELECT count(*) FROM open_periods WHERE due_at <= $1`, clock.At.Load()+24*3600e6); n != 0 {
		t.Errorf("%d are due within a day", n)
	}
	holder, err := w.store.Pool().Begin(w.Context())
	w.check(err)
	defer func() { _ = holder.Rollback(context.WithoutCancel(w.Context())) }()
	_, err = holder.Exec(w.Context(), `SELECT FROM open_periods WHERE customer_id = (SELECT min(id) FROM customers) FOR UPDATE`)
	w.check(err)
	w.named("default", "Us")
	testkit.Eventually(t, "the others are finalized", func() bool {
		work(1)
		return pgtest.Query[int](t, w.url, `SELECT count(*) FROM invoices WHERE status <> 'draft'`) == customers-1
	})
	if n := w.waitingDrafts(); n != 1 {
		t.Errorf("%d wait while one is held", n)
	}
	w.check(holder.Rollback(w.Context()))
	testkit.Eventually(t, "all are finalized", func() bool {
		work(1)
		return pgtest.Query[int](t, w.url, `SELECT max(number) FROM invoices WHERE series = 'live'`) == customers
	})
	if n := planstest.Count(t, w.store, `count(*) FROM seller_calls`); n != 0 {
		t.Errorf("%d calls are left", n)
	}
}

// The name comes while a draft is being held: it waits for that, and the draft is finalized all the
// same.
func TestANameBesideAHeldDraft(t *testing.T) {
	w, id := begun(t)
	w.nameless()
	w.clock("2026-02-01T00:00:10Z")
	draft := w.stored(id)[0].ID
	tx, err := w.store.Pool().Begin(t.Context())
	w.check(err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	c, err := w.accounts.Lock(t.Context(), tx, id)
	w.check(err)
	w.check(w.invoices.FinalizeDrafts(t.Context(), tx, []*invoices.Task{invoices.DraftTask(c, draft, c.Now)}))
	w.check(w.accounts.SetDue(t.Context(), tx, id))
	written := make(chan error, 1)
	go func() {
		_, _, err := w.accounts.PutSeller(t.Context(), accounts.SellerInput{Seller: billing.Seller{Key: "default", Name: "Us"}}, planstest.AnyVersion)
		written <- err
	}()
	testkit.Eventually(t, "the name waits", func() bool {
		return pgtest.Query[bool](t, w.url, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)`)
	})
	w.check(w.worker.WorkOff(t.Context()))
	w.check(tx.Commit(t.Context()))
	w.check(<-written)
	w.workOff()
	if got := w.numbered(id); !slices.Equal(got, []string{"TEST-1"}) {
		t.Errorf("%q", got)
	}
}
