package plans

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota"
)

func instant(text string) int64 {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return at.UnixMicro()
}

func setClock(t testing.TB, s *Store, key, now string) {
	t.Helper()
	if _, _, err := s.PutTestClock(t.Context(), key, instant(now)); err != nil {
		t.Fatal(err)
	}
}

// onClock makes a customer that lives by a clock.
func onClock(t testing.TB, s *Store, key, clock string) *Customer {
	t.Helper()
	in := onPlan("basic")
	in.TestClock = &clock
	return putCustomer(t, s, key, in)
}

func TestTestClocks(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	ctx := t.Context()
	early, late := instant("2026-01-01T00:00:00.000001Z"), instant("2026-03-01T00:00:00Z")
	for i, c := range []struct {
		now     int64
		created bool
		changes int64
	}{{late, true, 1}, {late, false, 0}, {early, false, 1}, {0, false, 1}, {maxClock, false, 1}} {
		before := changeNumber(t, s)
		clock, created, err := s.PutTestClock(ctx, "c1", c.now)
		if err != nil || created != c.created || clock != (quota.TestClock{Key: "c1", Now: c.now}) || changeNumber(t, s) != before+c.changes {
			t.Errorf("%d: %+v %v %v", i, clock, created, err)
		}
		if got, err := s.GetTestClock(ctx, "c1"); err != nil || got != clock {
			t.Errorf("%d: %+v %v", i, got, err)
		}
	}
	before := changeNumber(t, s)
	for key, c := range map[string]struct {
		now  int64
		want []string
	}{"c1": {-1, []string{"now"}}, "c2": {maxClock + 1, []string{"now"}}, "a/b": {0, []string{"key"}}, "": {-1, []string{"key", "now"}}} {
		if _, _, err := s.PutTestClock(ctx, key, c.now); !slices.Equal(fields(err), c.want) {
			t.Errorf("%q: %v", key, err)
		}
	}
	if changeNumber(t, s) != before {
		t.Error("what was refused left a change")
	}
	for _, key := range []string{"none", "", "a/b"} {
		if _, err := s.GetTestClock(ctx, key); !errors.Is(err, ErrUnknownClock) {
			t.Errorf("%q: %v", key, err)
		}
	}
	setClock(t, s, "c0", "2026-01-01T00:00:00Z")
	first := must[*List[quota.TestClock]](t)(s.ListTestClocks(ctx, Page{Limit: 1}))
	second := must[*List[quota.TestClock]](t)(s.ListTestClocks(ctx, Page{Limit: 1, Cursor: first.Next}))
	if first.Items[0].Key != "c0" || second.Items[0].Key != "c1" || second.Next != "" {
		t.Errorf("%+v %+v", first, second)
	}
}

func TestCustomersStayOnTheirClock(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	setClock(t, s, "c1", "2026-01-31T23:30:00Z")
	setClock(t, s, "c2", "2026-01-01T00:00:00Z")
	with := func(clock *string) CustomerInput {
		in := onPlan("basic")
		in.Timezone, in.TestClock = "Europe/Berlin", clock
		return in
	}
	made := putCustomer(t, s, "timed", with(ptr("c1")))
	if made.TestClock == nil || *made.TestClock != "c1" || made.Clock.Now != instant("2026-01-31T23:30:00Z") ||
		made.BillingAnchor != "2026-02-01T00:30:00" {
		t.Errorf("%+v", made)
	}
	for name, in := range map[string]CustomerInput{"left out": with(nil), "the same": with(ptr("c1"))} {
		if kept := putCustomer(t, s, "timed", in); kept.TestClock == nil || *kept.TestClock != "c1" || kept.BillingAnchor != made.BillingAnchor {
			t.Errorf("%s: %+v", name, kept)
		}
	}
	before := changeNumber(t, s)
	for name, c := range map[string]struct{ customer, clock string }{
		"another": {"timed", "c2"}, "none such": {"timed", "c3"}, "from real time": {"acme", "c1"}, "new, none such": {"new", "c3"}, "malformed": {"new", "a/b"}, "empty": {"new", ""},
	} {
		_, _, err := s.PutCustomer(t.Context(), c.customer, with(&c.clock), Precondition{})
		if errors.Is(err, ErrPreconditionRequired) {
			_, _, err = s.PutCustomer(t.Context(), c.customer, with(&c.clock), anyVersion)
		}
		if !slices.Equal(fields(err), []string{"test_clock"}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	setClock(t, s, "far", "2500-01-01T00:00:00Z")
	in := with(ptr("far"))
	if _, _, err := s.PutCustomer(t.Context(), "far", in, Precondition{}); !slices.Equal(fields(err), []string{"billing_anchor"}) {
		t.Errorf("an anchor beyond 2200: %v", err)
	}
	if got := changeNumber(t, s); got != before+1 { // the clock
		t.Errorf("what was refused left %d changes", got-before-1)
	}
	in.BillingAnchor = "2026-01-01T00:00:00"
	putCustomer(t, s, "far", in)
}

// A clock that is set counts at once on the node that was asked and soon on others; what
// was resolved before is older by its number; and nobody else is concerned.
func TestASetClockCountsOnAllNodes(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	here, asked := newNode(t, url)
	_, other := newNode(t, url)
	populate(t, here)
	setClock(t, here, "c1", "2026-01-01T00:00:00Z")
	setClock(t, here, "c2", "2020-01-01T00:00:00Z")
	onClock(t, here, "timed", "c1")
	onClock(t, here, "elsewhere", "c2")
	resolve := func(c *Catalog, customer string) *quota.Target {
		return must[*quota.Target](t)(c.Resolve(t.Context(), customer, "api", 0))
	}
	real0, else0 := resolve(asked, "acme"), resolve(asked, "elsewhere")
	var held *quota.Target
	for i, now := range []string{"2026-02-01T00:00:00Z", "2025-01-01T00:00:00Z", "2026-02-01T00:00:00.5Z"} {
		eventually(t, "the clock as it was", func() bool { held = resolve(other, "timed"); return held.Clock != nil })
		resolve(asked, "timed")
		setClock(t, here, "c1", now)
		if got := resolve(asked, "timed"); got.Clock == nil || got.Clock.Key != "c1" || got.Clock.Now != instant(now) || got.Change <= held.Change {
			t.Errorf("%d: on the node that was asked: %+v, change %d after %d", i, got.Clock, got.Change, held.Change)
		}
		began := time.Now()
		eventually(t, "the clock on the other node", func() bool { return resolve(other, "timed").Clock.Now == instant(now) })
		if took := time.Since(began); took > Freshness {
			t.Errorf("%d: it took %s", i, took)
		}
	}
	if real0 != resolve(asked, "acme") || else0 != resolve(asked, "elsewhere") || real0.Clock != nil || else0.Clock.Now != instant("2020-01-01T00:00:00Z") {
		t.Error("a clock that was set touched those who do not live by it")
	}
}

func TestClocksOfManyCustomersAreOneFact(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s, c := newNode(t, url)
	populate(t, s)
	setClock(t, s, "c1", "2026-01-01T00:00:00Z")
	for i := range 10 {
		onClock(t, s, fmt.Sprint("c", i), "c1")
	}
	for _, now := range []string{"2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"} {
		setClock(t, s, "c1", now)
		for i := range 10 {
			if got := must[*quota.Target](t)(c.Resolve(t.Context(), fmt.Sprint("c", i), "api", 0)); got.Clock.Now != instant(now) {
				t.Errorf("%d: %+v", i, got.Clock)
			}
		}
	}
	account := must[*Account](t)(c.Meters(t.Context(), "c1"))
	if account.Clock == nil || account.Clock.Key != "c1" || account.Anonymous {
		t.Errorf("%+v", account)
	}
}
