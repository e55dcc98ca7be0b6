package plans

import (
	"testing"
	"time"

	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota/model"
)

// madeAt is when a change was made, µs.
func madeAt(t testing.TB, s *Store, number int64) int64 {
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
	return must[*model.Target](t)(c.Resolve(t.Context(), customer, "api", 0)).Edited
}

func TestTargetsKnowWhenTheirLimitsCameIntoForce(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s, c := newNode(t, url)
	_, other := newNode(t, url)
	populate(t, s)
	bolt := putCustomer(t, s, "bolt", onPlan("basic"))
	acme := must[*Customer](t)(s.GetCustomer(t.Context(), "acme"))
	is := func(what string, change int64) {
		t.Helper()
		want := madeAt(t, s, change)
		if got := editedOf(t, c, "acme"); got != want {
			t.Errorf("%s: edited %d, not %d", what, got, want)
		}
		eventually(t, what+" on the other node", func() bool { return editedOf(t, other, "acme") == want })
		meter := must[Meter](t)(s.GetMeter(t.Context(), "api"))
		walked := must[[]*model.Target](t)(other.Targets(t.Context(), []model.CounterKey{
			{Customer: acme.ID, Meter: meter.ID}, {Customer: acme.ID, Meter: meter.ID + 1000},
		}))
		for i, target := range walked {
			if target == nil || target.Edited != want {
				t.Errorf("%s: by id, %d: %+v", what, i, target)
			}
		}
	}
	is("created", acme.Change)
	declare(t, s, "seats")
	is("a change of something else", acme.Change)
	putPlan(t, s, "basic", hourly(6))
	plan := changeNumber(t, s)
	is("a plan's edit", plan)
	writeOverride(t, s, "acme", OverrideInput{Limit: 7})
	is("an override", changeNumber(t, s))
	if err := s.DeleteOverride(t.Context(), "acme", "hourly"); err != nil {
		t.Fatal(err)
	}
	is("no override", changeNumber(t, s))
	expires := databaseNow(t, s).Add(1500 * time.Millisecond)
	writeOverride(t, s, "acme", OverrideInput{Limit: 7, ExpiresAt: &expires})
	is("with an end", changeNumber(t, s))
	eventually(t, "the end", func() bool { return meets(t, c, "acme") == 6 })
	is("expired", changeNumber(t, s))
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
	populate(t, c.store)
	if got, want := editedOf(t, c, "new"), madeAt(t, c.store, changeNumber(t, c.store)); got != want {
		t.Errorf("edited %d, not %d", got, want)
	}
}

// What is older than the changes that are kept is long ago.
func TestEditsOfPrunedChangesAreLongAgo(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s := newStore(t, url)
	populate(t, s)
	declare(t, s, "seats")
	if _, err := s.Pool().Exec(t.Context(), `DELETE FROM changes WHERE number < $1`, changeNumber(t, s)); err != nil {
		t.Fatal(err)
	}
	c := idleCatalog(t, url, testOptions())
	if got := editedOf(t, c, "acme"); got != 0 {
		t.Errorf("edited %d", got)
	}
	putPlan(t, s, "basic", hourly(6))
	if err := c.CatchUp(t.Context(), changeNumber(t, s)); err != nil {
		t.Fatal(err)
	}
	if got, want := editedOf(t, c, "acme"), madeAt(t, s, changeNumber(t, s)); got != want {
		t.Errorf("a plan's edit after that: %d, not %d", got, want)
	}
}

// On a test clock edits are at what it showed then, however it is set on, or back, later.
func TestEditsAreByTheTestClock(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s, c := newNode(t, url)
	_, other := newNode(t, url)
	populate(t, s)
	const day = "2026-01-0"
	is := func(what string, want int64) {
		t.Helper()
		if got := editedOf(t, c, "timed"); got != want {
			t.Errorf("%s: edited %s, not %s", what, time.UnixMicro(got).UTC(), time.UnixMicro(want).UTC())
		}
		eventually(t, what+" on the other node", func() bool { return editedOf(t, other, "timed") == want })
	}
	first, second, third := day+"1T00:00:00Z", day+"2T00:00:00Z", day+"3T00:00:00Z"
	setClock(t, s, "c1", first)
	onClock(t, s, "timed", "c1")
	is("created", instant(first))
	setClock(t, s, "c1", second)
	is("set on", instant(first))
	putPlan(t, s, "basic", hourly(6))
	is("a plan's edit", instant(second))
	setClock(t, s, "c1", third)
	is("a plan's edit, set on", instant(second))
	expires := time.UnixMicro(instant(third)).Add(time.Hour)
	writeOverride(t, s, "timed", OverrideInput{Limit: 7, ExpiresAt: &expires})
	is("an override", instant(third))
	setClock(t, s, "c1", day+"4T00:00:00Z")
	is("expired by the clock alone", expires.UnixMicro())
	setClock(t, s, "c1", first)
	is("not expired any more", instant(third))
	if err := s.DeleteOverride(t.Context(), "timed", "hourly"); err != nil {
		t.Fatal(err)
	}
	is("no override, with the clock set back", instant(first))
	if got, want := editedOf(t, c, "acme"), madeAt(t, s, changeNumber(t, s)); got >= want || got < want-time.Hour.Microseconds() {
		t.Errorf("without a clock: %d", got)
	}
}

func TestTheClocksHistoryHasItsBound(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s := newStore(t, url)
	populate(t, s)
	c := idleCatalog(t, url, testOptions())
	at := func(minute int) int64 {
		return instant("2026-01-01T00:00:00Z") + int64(minute)*time.Minute.Microseconds()
	}
	set := func(minute int) {
		t.Helper()
		if _, _, err := s.PutTestClock(t.Context(), "c1", at(minute)); err != nil {
			t.Fatal(err)
		}
	}
	is := func(what string, want int64, pairs int) {
		t.Helper()
		if err := c.CatchUp(t.Context(), changeNumber(t, s)); err != nil {
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
	onClock(t, s, "timed", "c1")
	is("created", at(0), 1)
	for minute := range 49 {
		set(minute + 1)
	}
	is("49 settings later", at(0), 50)
	set(50)
	is("50 settings later", 0, 50)
	putPlan(t, s, "basic", hourly(6))
	is("a plan's edit", at(50), 50)
	set(51)
	is("set on", at(50), 50)
}
