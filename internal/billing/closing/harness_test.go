package closing

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/invoices"
	"quotad/internal/plans"
	"quotad/internal/plans/catalog"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
	"quotad/internal/quota"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const closeDelay = 10 * time.Second

// world is a node on a database of the test's own, with a test clock.
type world struct {
	testing.TB
	url      string
	store    *store.Store
	catalog  *catalog.Catalog
	engine   *quota.Engine
	accounts *accounts.Accounts
	invoices *invoices.Invoices
	worker   *Worker
	log      *pgtest.Log
}

func newWorld(t testing.TB) *world { return anotherNode(t, pgtest.NewDatabase(t)) }

// anotherNode is a node on a database that others may use, too.
func anotherNode(t testing.TB, url string) *world { return nodeBy(t, url, planstest.WallClock) }

// nodeBy is a node that takes now for the database's time. change edits its engine.
func nodeBy(t testing.TB, url string, now func(context.Context) (int64, error), change ...func(*quota.Options)) *world {
	t.Helper()
	w := &world{TB: t, url: url, log: new(pgtest.Log)}
	log := slog.New(slog.NewTextHandler(w.log, nil))
	pool, hooks := planstest.NewPool(t, url), accounts.NewHooks(now, closeDelay)
	w.catalog = catalog.New(pool, catalog.Options{Monotonic: planstest.Monotonic, Now: now, Caps: hooks.CapPeriods, Within: testkit.Patience, Log: log})
	w.store = store.New(pool, store.Options{Committed: w.catalog.Committed, Billing: hooks.Billing(), Within: testkit.Patience})
	ctx, cancel := context.WithCancel(testkit.Context(t))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.catalog.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	w.engine = planstest.OpenEngine(t, url, pool, w.catalog.Fresh,
		append([]func(*quota.Options){func(o *quota.Options) { o.Now, o.AlsoAdjusted = now, invoices.OpenAdjustments }}, change...)...)
	w.accounts = accounts.New(w.store, hooks)
	w.invoices = invoices.New(w.accounts, time.Hour)
	w.worker = New(Options{
		Pool: pool, Accounts: w.accounts, Invoices: w.invoices, Catalog: w.catalog, Engine: w.engine, Stopwatch: planstest.Monotonic, Log: log,
		FenceTime: testkit.Patience, // nobody is put off, by a clock that stands
	})
	return w
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// clock sets the test clock and does all that is due.
func (w *world) clock(now string) {
	w.Helper()
	planstest.SetClock(w, w.store, "clock", now)
	w.workOff()
}

// workOff does all that is due. Whichever statement wrote due_at, it is when the next step is due.
func (w *world) workOff() {
	w.Helper()
	planstest.WorkOff(w, w.store, w.worker.WorkOff)
	w.checkDue()
}

// checkDue compares due_at of customers with their next steps. Who is erased is due at once.
func (w *world) checkDue() {
	w.Helper()
	due := make(map[int64]int64)
	rows, _ := w.store.Pool().Query(w.Context(), `
		SELECT customer_id, due_at FROM open_periods o JOIN customers e ON e.id = o.customer_id WHERE e.erased_at IS NULL`)
	var id, at int64
	_, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		due[id] = at
		return nil
	})
	w.check(err)
	now, err := w.accounts.Now(w.Context())
	w.check(err)
	b := new(pgx.Batch)
	next := w.accounts.QueueSteps(b, slices.Collect(maps.Keys(due)), now)
	w.check(postgres.Send(w.Context(), w.store.Pool(), b))
	for id, at := range due {
		want, some := next[id]
		if !some {
			want.At = math.MaxInt64
		}
		if at != want.At {
			w.Errorf("due_at of customer %d is %d, but the next step is due at %d", id, at, want.At)
		}
	}
}

// customer makes a customer on the test clock, billed from what it shows.
func (w *world) customer(key, plan string) int64 {
	w.Helper()
	in := planstest.OnPlan(plan)
	in.TestClock, in.BillingAnchor = planstest.Ptr("clock"), "2026-01-01T00:00:00"
	c := planstest.PutCustomer(w, w.store, key, in)
	return c.ID
}

// hit charges units, or fails the test.
func (w *world) hit(customer, meter string, cost int64) {
	w.Helper()
	target, err := w.catalog.Resolve(w.Context(), customer, meter, 0)
	w.check(err)
	d, err := w.engine.Decide(w.Context(), target, cost)
	w.check(err)
	if !d.Allowed {
		w.Fatalf("%s %s: refused", customer, meter)
	}
}

// plan writes a plan of the JSON of its prices.
func (w *world) plan(key string, base int64, prices string) *plans.Plan {
	w.Helper()
	in := plans.PlanInput{Name: strings.ToUpper(key), Currency: "USD", Interval: "month", IntervalCount: 1, BasePriceMinor: base}
	w.check(json.Unmarshal([]byte(prices), &in.Prices))
	return planstest.PutPlan(w, w.store, key, in)
}

// stored are all invoices of a customer, as they are stored.
func (w *world) stored(customer int64) []*billing.Invoice {
	w.Helper()
	ids := pgtest.Query[[]string](w, w.url, `SELECT array_agg(id::text ORDER BY period_end, made_at, id) FROM invoices WHERE customer_id = $1`, customer)
	tx, err := w.store.Pool().Begin(w.Context())
	w.check(err)
	defer func() { _ = tx.Rollback(w.Context()) }()
	all, err := invoices.NewStored().Invoices(w.Context(), tx, ids)
	w.check(err)
	slices.SortFunc(all, func(a, b *billing.Invoice) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return all
}
