package catalog

import (
	"slices"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// rate is a plan with one token bucket.
func rate(limit int64) plans.PlanInput {
	p := planstest.Hourly(limit)
	p.Limits[0].Algorithm, p.Limits[0].Burst = "token_bucket", planstest.Ptr(int64(100))
	return p
}

// ratesOf are what a customer's limit was, without the instants: the limits, one after the other.
func ratesOf(t testing.TB, c *Catalog, customer string) (limits []int64, rates model.Rates) {
	t.Helper()
	l := planstest.Must[*model.Target](t)(c.Resolve(t.Context(), customer, "api", 0)).Limit(0)
	if l.Rates() == nil {
		return []int64{l.Limit}, nil
	}
	for _, r := range l.Rates() {
		limits = append(limits, r.Limit)
	}
	return limits, l.Rates()
}

// rated watches what a customer's limit was, on nodes that heard of each change, and on new ones
// after the changes were pruned.
type rated struct {
	url      string
	store    *store.Store
	nodes    []*Catalog
	customer string
}

func newRated(t *testing.T) *rated {
	t.Helper()
	r := &rated{url: pgtest.NewDatabase(t), customer: "acme"}
	var one, other *Catalog
	r.store, one = newNode(t, r.url)
	_, other = newNode(t, r.url)
	r.nodes = []*Catalog{one, other}
	planstest.Declare(t, r.store, "api")
	planstest.PutPlan(t, r.store, "basic", rate(5))
	return r
}

// are says what the limit was, and returns the instants of its edits.
func (r *rated) are(t *testing.T, what string, want ...int64) (from []int64) {
	t.Helper()
	if _, err := r.store.Pool().Exec(t.Context(), `DELETE FROM changes WHERE number < (SELECT number FROM change_number)`); err != nil {
		t.Fatal(err)
	}
	started := idleCatalog(t, r.url, testOptions())
	_, first := ratesOf(t, r.nodes[0], r.customer)
	for n, c := range []*Catalog{r.nodes[0], r.nodes[1], started} {
		if err := c.CatchUp(t.Context(), planstest.ChangeNumber(t, r.store)); err != nil {
			t.Fatal(err)
		}
		got, rates := ratesOf(t, c, r.customer)
		if !slices.Equal(got, want) || !slices.Equal(rates, first) {
			t.Errorf("%s: node %d says %v %v, want %v %v", what, n, got, rates, want, first)
		}
	}
	for _, e := range first {
		from = append(from, e.From)
	}
	return from
}

func (r *rated) put(t *testing.T, what plans.OverrideInput) { //nolint:gocritic // as the store takes it
	t.Helper()
	planstest.WriteOverride(t, r.store, r.customer, what)
}

func TestLimitsKnowWhatTheyWere(t *testing.T) {
	t.Parallel()
	r := newRated(t)
	s := r.store
	planstest.PutCustomer(t, s, "acme", planstest.OnPlan("basic"))
	planstest.PutCustomer(t, s, "bolt", planstest.OnPlan("basic"))
	r.are(t, "created", 5)
	planstest.PutPlan(t, s, "basic", rate(6))
	edited := r.are(t, "a version", 5, 6)
	renamed := planstest.OnPlan("basic")
	renamed.Name = "Another"
	planstest.PutCustomer(t, s, "acme", renamed)
	planstest.Declare(t, s, "seats")
	planstest.WriteOverride(t, s, "bolt", plans.OverrideInput{Limit: 1})
	if again := r.are(t, "writes of other things", 5, 6); !slices.Equal(again, edited) {
		t.Errorf("writes of other things: edited at %v, not %v", again, edited)
	}
	r.put(t, plans.OverrideInput{Limit: 60})
	r.are(t, "an override", 5, 6, 60)
	planstest.PutPlan(t, s, "basic", rate(7))
	r.are(t, "a version under an override", 5, 6, 60)
	r.put(t, plans.OverrideInput{Limit: 61})
	r.are(t, "another override", 5, 6, 60, 61)
	if err := s.DeleteOverride(t.Context(), "acme", "hourly"); err != nil {
		t.Fatal(err)
	}
	r.are(t, "no override", 5, 6, 60, 61, 7)
	pinned := renamed
	pinned.PlanVersion = planstest.Ptr(1)
	planstest.PutCustomer(t, s, "acme", pinned)
	r.are(t, "a pin", 5, 6, 60, 61, 7, 5)
	planstest.PutPlan(t, s, "basic", rate(8))
	planstest.PutCustomer(t, s, "acme", renamed)
	r.are(t, "no pin", 5, 6, 60, 61, 7, 5, 8)
	planstest.PutPlan(t, s, "other", rate(50))
	planstest.PutPlan(t, s, "other", rate(9))
	planstest.PutCustomer(t, s, "acme", planstest.OnPlan("other"))
	r.are(t, "another plan", 5, 6, 60, 61, 7, 5, 8, 9)
	planstest.PutPlan(t, s, "basic", rate(10))
	r.are(t, "a version of the plan before", 5, 6, 60, 61, 7, 5, 8, 9)
	next := rate(11)
	next.ApplyTo = "new"
	planstest.PutPlan(t, s, "other", next)
	r.are(t, "a version for new customers", 5, 6, 60, 61, 7, 5, 8, 9)
	planstest.PutPlan(t, s, "other", rate(12))
	r.are(t, "a version for all", 5, 6, 60, 61, 7, 5, 8, 9, 12)
	planstest.PutPlan(t, s, "other", rate(13))
	planstest.PutPlan(t, s, "other", rate(14))
	r.are(t, "the last 8 edits, and the slowest of the others", 5, 61, 7, 5, 8, 9, 12, 13, 14)
	without := planstest.Hourly(3)
	planstest.PutPlan(t, s, "windows", without)
	planstest.PutCustomer(t, s, "acme", planstest.OnPlan("windows"))
	if n := planstest.Count(t, s, `count(*) FROM limit_rates WHERE customer_id = (SELECT id FROM customers WHERE key = 'acme')`); n != 0 {
		t.Errorf("%d rows of limits that the plan does not have", n)
	}
	r.customer = "bolt"
	r.are(t, "an override that stays", 5, 6, 1)
}

// TestRatesOfAnOverrideThatEnds: the end counts from its own instant on, whoever writes it, and
// before anybody does.
func TestRatesOfAnOverrideThatEnds(t *testing.T) {
	t.Parallel()
	r := newRated(t)
	planstest.PutCustomer(t, r.store, "acme", planstest.OnPlan("basic"))
	ends := planstest.DatabaseNow(t, r.store).Add(time.Hour).Truncate(time.Microsecond)
	r.put(t, plans.OverrideInput{Limit: 60, ExpiresAt: &ends})
	r.are(t, "an override", 5, 60)
	c := idleCatalog(t, r.url, testOptions())
	for _, at := range []int64{ends.UnixMicro() - 1, ends.UnixMicro()} {
		target := planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0))
		if over := target.For(nil).ForReservations().Over(at) != nil; over != (at == ends.UnixMicro()) {
			t.Errorf("it is over at %d: %v; it ends at %d", at, over, ends.UnixMicro())
		}
	}
	if got, rates := ratesOf(t, c, "acme"); !slices.Equal(got, []int64{5, 60, 5}) || rates[2].From != ends.UnixMicro() {
		t.Errorf("its row is still there: %v %v", got, rates)
	}
	was := ends
	ends = planstest.DatabaseNow(t, r.store) // nobody waits for an hour
	for _, sql := range []string{`UPDATE limit_rates SET until = $2 WHERE until = $1`, `UPDATE overrides SET expires_at = $2 WHERE expires_at = $1`} {
		if done, err := r.store.Pool().Exec(t.Context(), sql, was.UnixMicro(), ends.UnixMicro()); err != nil || done.RowsAffected() != 1 {
			t.Fatal(done, err)
		}
	}
	testkit.Eventually(t, "the end", func() bool { return meets(t, r.nodes[0], "acme") == 5 })
	if from := r.are(t, "ended", 5, 60, 5); from[2] != ends.UnixMicro() {
		t.Errorf("it ended at %d, not %d", from[2], ends.UnixMicro())
	}
	planstest.PutPlan(t, r.store, "basic", rate(6))
	r.are(t, "a version after the end", 5, 60, 5, 6)
	if n := planstest.Count(t, r.store, `count(*) FROM overrides`); n != 0 {
		t.Errorf("%d overrides", n)
	}
}

func TestRatesOfWhoeverJoinsLater(t *testing.T) {
	t.Parallel()
	r := newRated(t)
	s := r.store
	next := rate(6)
	next.ApplyTo = "new"
	planstest.PutCustomer(t, s, "acme", planstest.OnPlan("basic"))
	planstest.PutPlan(t, s, "basic", next)
	planstest.PutCustomer(t, s, "bolt", planstest.OnPlan("basic"))
	planstest.PutPlan(t, s, "basic", rate(7))
	planstest.PutCustomer(t, s, "cern", planstest.OnPlan("basic"))
	for customer, want := range map[string][]int64{"acme": {5, 7}, "bolt": {6, 7}, "cern": {7}} {
		r.customer = customer
		r.are(t, customer, want...)
	}
	c := r.nodes[0]
	limits := planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0)).Counters[0].Limits
	planstest.PutCustomer(t, s, "dora", planstest.OnPlan("basic"))
	if _, err := s.Pool().Exec(t.Context(), `UPDATE customers SET joined_version = 1 WHERE key = 'dora'`); err != nil {
		t.Fatal(err)
	}
	if same := planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "dora", "api", 0)).Counters[0].Limits; &same[0] != &limits[0] {
		t.Error("customers that joined at one version do not share their limits")
	}
}

// On a test clock edits are at what it showed then, and at what it is set back to later.
func TestRatesAreByTheTestClock(t *testing.T) {
	t.Parallel()
	r := newRated(t)
	s := r.store
	r.customer = "timed"
	day := func(n int) int64 { return planstest.Instant("2026-01-01T00:00:00Z") + int64(n)*86400e6 }
	set := func(n int) {
		t.Helper()
		if _, _, err := s.PutTestClock(t.Context(), "c1", day(n)); err != nil {
			t.Fatal(err)
		}
	}
	at := func(what string, from []int64, days ...int) {
		t.Helper()
		want := []int64{model.Always}
		for _, n := range days {
			want = append(want, day(n))
		}
		if !slices.Equal(from, want) {
			t.Errorf("%s: edited at %v, not %v", what, from, want)
		}
	}
	set(1)
	planstest.OnClock(t, s, "timed", "c1")
	r.are(t, "created", 5)
	set(2)
	planstest.PutPlan(t, s, "basic", rate(6))
	at("a version", r.are(t, "a version", 5, 6), 2)
	set(4)
	at("set on", r.are(t, "set on", 5, 6), 2)
	expires := time.UnixMicro(day(8)).UTC()
	r.put(t, plans.OverrideInput{Limit: 60, ExpiresAt: &expires})
	at("an override", r.are(t, "an override", 5, 6, 60), 2, 4)
	set(9)
	at("ended by the clock", r.are(t, "ended by the clock", 5, 6, 60, 6), 2, 4, 8)
	planstest.PutPlan(t, s, "basic", rate(7))
	at("a version after the end", r.are(t, "a version after the end", 5, 6, 60, 6, 7), 2, 4, 8, 9)
	set(3)
	at("set back", r.are(t, "set back", 5, 6, 60), 2, 3)
	set(10)
	at("set on again", r.are(t, "set on again", 5, 6, 60, 7), 2, 3, 8)
	set(5)
	if err := s.DeleteOverride(t.Context(), "timed", "hourly"); err != nil {
		t.Fatal(err)
	}
	at("deleted", r.are(t, "deleted", 5, 6, 60, 7), 2, 3, 5)
	set(1)
	at("set back before all", r.are(t, "set back before all", 5, 7), 1)
}

// TestTheClocksHistoryHasItsBound: an edit from before it counts at the slower rate up to there.
func TestTheClocksHistoryHasItsBound(t *testing.T) {
	t.Parallel()
	r := newRated(t)
	r.customer = "timed"
	at := func(minute int) int64 {
		return planstest.Instant("2026-01-01T00:00:00Z") + int64(minute)*time.Minute.Microseconds()
	}
	set := func(minute int) {
		t.Helper()
		if _, _, err := r.store.PutTestClock(t.Context(), "c1", at(minute)); err != nil {
			t.Fatal(err)
		}
	}
	set(0)
	set(0) // no change
	planstest.OnClock(t, r.store, "timed", "c1")
	planstest.PutPlan(t, r.store, "basic", rate(4))
	planstest.PutPlan(t, r.store, "basic", rate(6))
	for minute := range 49 {
		set(minute + 1)
	}
	if from := r.are(t, "49 settings later", 5, 6); from[1] != at(0) {
		t.Errorf("49 settings later: edited at %d", from[1])
	}
	set(50)
	if from := r.are(t, "50 settings later", 4, 6); from[1] != at(1) {
		t.Errorf("50 settings later: edited at %d", from[1])
	}
	if n := planstest.Count(t, r.store, `cardinality(history) FROM test_clocks`); n != 100 {
		t.Errorf("a history of %d numbers", n)
	}
}
