package catalog

import (
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/plans/planstest"
	"quotad/internal/plans/store"
	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota/model"
)

// madeAt is when a change was made, µs.
func madeAt(t testing.TB, s *store.Store, number int64) int64 {
	t.Helper()
	var at time.Time
	if err := s.Pool().QueryRow(t.Context(), selectMark, number).Scan(&at); err != nil {
		t.Fatal(err)
	}
	if at.UnixMicro() == 0 {
		t.Fatalf("there is no change %d", number)
	}
	return at.UnixMicro()
}

func editedOf(t testing.TB, c *Catalog, customer string) int64 {
	t.Helper()
	return planstest.Must[*model.Target](t)(c.Resolve(t.Context(), customer, "api", 0)).Edited
}

func TestTargetsKnowWhenTheirLimitsCameIntoForce(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s, c := newNode(t, url)
	_, other := newNode(t, url)
	planstest.Populate(t, s)
	bolt := planstest.PutCustomer(t, s, "bolt", planstest.OnPlan("basic"))
	acme := planstest.Must[*plans.Customer](t)(s.GetCustomer(t.Context(), "acme"))
	is := func(what string, change int64) {
		t.Helper()
		want := madeAt(t, s, change)
		if got := editedOf(t, c, "acme"); got != want {
			t.Errorf("%s: edited %d, not %d", what, got, want)
		}
		pgtest.Eventually(t, what+" on the other node", func() bool { return editedOf(t, other, "acme") == want })
		meter := planstest.Must[plans.Meter](t)(s.GetMeter(t.Context(), "api"))
		walked := planstest.Must[[]*model.Target](t)(other.Targets(t.Context(), []model.CounterKey{
			{Customer: acme.ID, Meter: meter.ID}, {Customer: acme.ID, Meter: meter.ID + 1000},
		}))
		for i, target := range walked {
			if target == nil || target.Edited != want {
				t.Errorf("%s: by id, %d: %+v", what, i, target)
			}
		}
	}
	is("created", acme.Change)
	planstest.Declare(t, s, "seats")
	is("a change of something else", acme.Change)
	planstest.PutPlan(t, s, "basic", planstest.Hourly(6))
	plan := planstest.ChangeNumber(t, s)
	is("a plan's edit", plan)
	planstest.WriteOverride(t, s, "acme", plans.OverrideInput{Limit: 7})
	is("an override", planstest.ChangeNumber(t, s))
	if err := s.DeleteOverride(t.Context(), "acme", "hourly"); err != nil {
		t.Fatal(err)
	}
	is("no override", planstest.ChangeNumber(t, s))
	expires := planstest.DatabaseNow(t, s).Add(1500 * time.Millisecond)
	planstest.WriteOverride(t, s, "acme", plans.OverrideInput{Limit: 7, ExpiresAt: &expires})
	is("with an end", planstest.ChangeNumber(t, s))
	pgtest.Eventually(t, "the end", func() bool { return meets(t, c, "acme") == 6 })
	is("expired", planstest.ChangeNumber(t, s))
	if got := editedOf(t, c, "acme"); got < expires.UnixMicro() {
		t.Errorf("it ended at %d, before %d", got, expires.UnixMicro())
	}
	if got := editedOf(t, c, "bolt"); got != madeAt(t, s, plan) || bolt.Change >= plan {
		t.Errorf("a customer without overrides: %d", got)
	}
}

func TestFirstHitsKnowWhenTheirLimitsCameIntoForce(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	options := testOptions()
	options.DefaultPlan = "basic"
	c := idleCatalog(t, url, options)
	planstest.Populate(t, c.store)
	if got, want := editedOf(t, c, "new"), madeAt(t, c.store, planstest.ChangeNumber(t, c.store)); got != want {
		t.Errorf("edited %d, not %d", got, want)
	}
}

// What is older than the changes that are kept is long ago.
func TestEditsOfPrunedChangesAreLongAgo(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s := planstest.NewStore(t, url)
	planstest.Populate(t, s)
	planstest.Declare(t, s, "seats")
	if _, err := s.Pool().Exec(t.Context(), `DELETE FROM changes WHERE number < $1`, planstest.ChangeNumber(t, s)); err != nil {
		t.Fatal(err)
	}
	c := idleCatalog(t, url, testOptions())
	if got := editedOf(t, c, "acme"); got != 0 {
		t.Errorf("edited %d", got)
	}
	planstest.PutPlan(t, s, "basic", planstest.Hourly(6))
	if err := c.CatchUp(t.Context(), planstest.ChangeNumber(t, s)); err != nil {
		t.Fatal(err)
	}
	if got, want := editedOf(t, c, "acme"), madeAt(t, s, planstest.ChangeNumber(t, s)); got != want {
		t.Errorf("a plan's edit after that: %d, not %d", got, want)
	}
}

// On a test clock edits are at what it showed then, however it is set on, or back, later.
func TestEditsAreByTheTestClock(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s, c := newNode(t, url)
	_, other := newNode(t, url)
	planstest.Populate(t, s)
	const day = "2026-01-0"
	is := func(what string, want int64) {
		t.Helper()
		if got := editedOf(t, c, "timed"); got != want {
			t.Errorf("%s: edited %s, not %s", what, time.UnixMicro(got).UTC(), time.UnixMicro(want).UTC())
		}
		pgtest.Eventually(t, what+" on the other node", func() bool { return editedOf(t, other, "timed") == want })
	}
	first, second, third := day+"1T00:00:00Z", day+"2T00:00:00Z", day+"3T00:00:00Z"
	planstest.SetClock(t, s, "c1", first)
	planstest.OnClock(t, s, "timed", "c1")
	is("created", planstest.Instant(first))
	planstest.SetClock(t, s, "c1", second)
	is("set on", planstest.Instant(first))
	planstest.PutPlan(t, s, "basic", planstest.Hourly(6))
	is("a plan's edit", planstest.Instant(second))
	planstest.SetClock(t, s, "c1", third)
	is("a plan's edit, set on", planstest.Instant(second))
	expires := time.UnixMicro(planstest.Instant(third)).Add(time.Hour)
	planstest.WriteOverride(t, s, "timed", plans.OverrideInput{Limit: 7, ExpiresAt: &expires})
	is("an override", planstest.Instant(third))
	planstest.SetClock(t, s, "c1", day+"4T00:00:00Z")
	is("expired by the clock alone", expires.UnixMicro())
	planstest.SetClock(t, s, "c1", first)
	is("not expired any more", planstest.Instant(third))
	if err := s.DeleteOverride(t.Context(), "timed", "hourly"); err != nil {
		t.Fatal(err)
	}
	is("no override, with the clock set back", planstest.Instant(first))
	if got, want := editedOf(t, c, "acme"), madeAt(t, s, planstest.ChangeNumber(t, s)); got >= want || got < want-time.Hour.Microseconds() {
		t.Errorf("without a clock: %d", got)
	}
}

func TestTheClocksHistoryHasItsBound(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s := planstest.NewStore(t, url)
	planstest.Populate(t, s)
	c := idleCatalog(t, url, testOptions())
	at := func(minute int) int64 {
		return planstest.Instant("2026-01-01T00:00:00Z") + int64(minute)*time.Minute.Microseconds()
	}
	set := func(minute int) {
		t.Helper()
		if _, _, err := s.PutTestClock(t.Context(), "c1", at(minute)); err != nil {
			t.Fatal(err)
		}
	}
	is := func(what string, want int64, pairs int) {
		t.Helper()
		if err := c.CatchUp(t.Context(), planstest.ChangeNumber(t, s)); err != nil {
			t.Fatal(err)
		}
		if got := editedOf(t, c, "timed"); got != want {
			t.Errorf("%s: edited %d, not %d", what, got, want)
		}
		var length int
		if err := s.Pool().QueryRow(t.Context(), `SELECT cardinality(history) FROM test_clocks`).Scan(&length); err != nil || length != 2*pairs {
			t.Errorf("%s: a history of %d, %v", what, length, err)
		}
	}
	set(0)
	set(0) // no change
	planstest.OnClock(t, s, "timed", "c1")
	is("created", at(0), 1)
	for minute := range 49 {
		set(minute + 1)
	}
	is("49 settings later", at(0), 50)
	set(50)
	is("50 settings later", 0, 50)
	planstest.PutPlan(t, s, "basic", planstest.Hourly(6))
	is("a plan's edit", at(50), 50)
	set(51)
	is("set on", at(50), 50)
}
