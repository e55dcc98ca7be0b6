package catalog

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// What is unpacked is what was packed, to the last field; another generation's is not there.
func TestPackedCustomersComeBackAsTheyWere(t *testing.T) {
	p := newPacking(defaultPacked)
	m := newMemory(7, 10, p)
	later := newMemory(8, 10, p)
	m.since = time.Date(2026, 11, 22, 3, 0, 0, 1000, time.UTC).UnixMicro()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[ -.0-~]{3,200}`).Draw(t, "key")
		zone, err := calendar.Location(rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "Pacific/Apia"}).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		anchor, err := calendar.AnchorOf(rapid.Int64Range(0, 7_258_118_399).Draw(t, "anchor"))
		if err != nil {
			t.Fatal(err)
		}
		number := rapid.Int64Min(0)
		e := &customerEntry{
			known: true, fact: m.fact(store.KindCustomer, key, number.Draw(t, "as of")),
			id: number.Draw(t, "id"), change: number.Draw(t, "change"),
			onPlan: onPlan{
				plan:   rapid.StringMatching(`[a-z]{1,3}`).Draw(t, "plan"),
				pinned: int(rapid.Int32Min(0).Draw(t, "pinned")), joined: int(rapid.Int32Min(0).Draw(t, "joined")),
			},
			anonymous: rapid.Bool().Draw(t, "anonymous"),
			periods:   calendar.Periods{Zone: zone, Anchor: anchor},
		}
		if cuts := rapid.SliceOfN(rapid.Int64Range(calendar.MinInstant, calendar.MaxInstant), 0, maxPackedCuts).Draw(t, "cuts"); len(cuts) > 0 {
			e.periods.Cuts = cuts
		}
		m.pack(key, e)
		got := m.unpack(key)
		if got == nil {
			t.Fatal("it is not there")
		}
		if got.fact != e.fact || got.id != e.id || got.change != e.change || !got.known ||
			got.plan != e.plan || got.anonymous != e.anonymous || got.pinned != e.pinned || got.joined != e.joined || !reflect.DeepEqual(got.periods, e.periods) {
			t.Errorf("%+v, not %+v", got, e)
		}
		if later.unpack(key) != nil {
			t.Error("another generation's is taken")
		}
	})
}

// Whoever has something of its own is not packed: only the database tells all of it.
func TestOnlyPlainCustomersArePacked(t *testing.T) {
	m := newMemory(1, 10, newPacking(defaultPacked))
	for name, change := range map[string]func(*customerEntry){
		"a test clock":         func(e *customerEntry) { e.clock = "c" },
		"features":             func(e *customerEntry) { e.features = map[string]any{"sso": true} },
		"an override":          func(e *customerEntry) { e.overrides = map[string]plans.StoredOverride{"a": {}} },
		"other rates before":   func(e *customerEntry) { e.rates = map[string]*plans.OwnRates{"a": {}} },
		"other periods before": func(e *customerEntry) { e.periods.Before = &calendar.Periods{Zone: time.UTC} },
		"a suspension":         func(e *customerEntry) { e.suspension = &plans.Suspension{Reason: "x"} },
		"a scheduled change":   func(e *customerEntry) { e.scheduled = new(scheduled) },
		"an end":               func(e *customerEntry) { e.ends = new(int64) },
		"many cuts":            func(e *customerEntry) { e.periods.Cuts = make([]int64, maxPackedCuts+1) },
		"nothing, being gone":  func(e *customerEntry) { e.known = false },
	} {
		e := &customerEntry{known: true, onPlan: onPlan{plan: "p"}, fact: m.fact(store.KindCustomer, name, 1), periods: calendar.Periods{Zone: time.UTC}}
		change(e)
		if m.pack(name, e); m.unpack(name) != nil {
			t.Errorf("with %s: it is packed", name)
		}
	}
}

// More plans than there is room for: their customers are not packed, and nothing else.
func TestPackedCommonsAreBounded(t *testing.T) {
	m := newMemory(1, 10, newPacking(defaultPacked))
	e := &customerEntry{known: true, fact: m.fact(store.KindCustomer, "a", 1), periods: calendar.Periods{Zone: time.UTC}}
	for i := range maxCommons + 10 {
		e.plan = fmt.Sprint("plan-", i)
		m.pack("a", e)
	}
	if n := len(m.packed.commons.all); n != maxCommons {
		t.Errorf("%d of them", n)
	}
	if got := m.unpack("a"); got == nil || got.plan != fmt.Sprint("plan-", maxCommons-1) {
		t.Errorf("%+v", got)
	}
}

// A memory of two: all others are answered without the database.
func TestPackedCustomersAreResolved(t *testing.T) {
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Populate(t, admin)
	const customers = 40
	if _, err := admin.Pool().Exec(t.Context(), `
		INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change)
		SELECT 'c' || n, 'C', 1, 1, 'UTC', '2026-01-31T00:00:00', 1 FROM generate_series(0, $1::integer - 1) n`, customers); err != nil {
		t.Fatal(err)
	}
	o := testOptions()
	o.Customers = 2
	c := idleCatalog(t, url, o)
	resolve := func(i int) (id int64) {
		t.Helper()
		target, err := c.Resolve(t.Context(), fmt.Sprint("c", i), "api", 0)
		if err != nil {
			t.Fatal(err)
		}
		return target.Counters[0].Key.Customer
	}
	ids := make([]int64, customers)
	for range 2 { // the first two had room
		for i := range ids {
			ids[i] = resolve(i)
		}
	}
	release := holdConnections(t, storeOf(c)) // who asks the database now waits for ever
	for i := range ids {
		if got := resolve(i); got != ids[i] {
			t.Errorf("c%d is customer %d, not %d", i, got, ids[i])
		}
	}
	release()
	if c.memory.Load().customers.Len() > 2 {
		t.Error("more than two are kept ready")
	}
}
