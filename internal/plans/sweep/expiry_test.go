package sweep

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// setClockRow sets a test clock, as its own write does.
func setClockRow(t testing.TB, s *store.Store, key string, at time.Time) {
	t.Helper()
	err := s.Write(t.Context(), store.KindClock, key, func(ctx context.Context, w *store.Writing) error {
		_, err := w.Exec(ctx, `INSERT INTO test_clocks (key, now, change) VALUES ($1, $2, $3)
			ON CONFLICT (key) DO UPDATE SET now = excluded.now, change = excluded.change`, key, at.UnixMicro(), w.Number)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// putOnClockRow puts a customer on a test clock, or on PostgreSQL's.
func putOnClockRow(t testing.TB, s *store.Store, customer string, clock *string) {
	t.Helper()
	err := s.Write(t.Context(), store.KindCustomer, customer, func(ctx context.Context, w *store.Writing) error {
		_, err := w.Exec(ctx, `UPDATE customers SET change = $2, test_clock_id = (SELECT id FROM test_clocks WHERE key = $3)
			WHERE key = $1`, customer, w.Number, clock)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// On a test clock an override expires when that says so: at once, without a write, and
// not when PostgreSQL's clock does. When the customer leaves the clock, it is the other way.
func TestOverridesOnATestClock(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	n, other := startNode(t, url, ""), startNode(t, url, "")
	s := n.Store
	planstest.Populate(t, s)
	epoch := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC) // all of it is past for PostgreSQL
	setClockRow(t, s, "old", epoch)
	putOnClockRow(t, s, "acme", planstest.Ptr("old"))
	if _, _, err := s.PutOverride(t.Context(), "acme", "hourly", plans.OverrideInput{Limit: 7, ExpiresAt: &epoch}); !slices.Equal(planstest.Fields(err),
		[]string{"expires_at"}) ||
		!strings.Contains(err.Error(), "2001-02-03T04:05:06Z") {
		t.Errorf("at the clock's own instant: %v", err)
	}
	expires := epoch.Add(time.Hour)
	planstest.WriteOverride(t, s, "acme", plans.OverrideInput{Limit: 7, ExpiresAt: &expires})
	is := func(when string, want int64) {
		t.Helper()
		if got := n.meets(t, "acme"); got != want {
			t.Errorf("%s: meets %d, not %d", when, got, want)
		}
		soon(t, when, func(n *node) bool { return n.meets(t, "acme") == want }, other)
		list := planstest.Must[*plans.List[*plans.Override]](t)(s.ListOverrides(t.Context(), "acme", plans.Page{}))
		if len(list.Items) != 1 || list.Items[0].InForce != (want == 7) || list.Items[0].TestClock != "old" {
			t.Errorf("%s: shown as %+v", when, list.Items)
		}
	}
	if err := n.sweeper.endExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	is("before it expires", 7)
	setClockRow(t, s, "old", expires.Add(-time.Microsecond))
	is("a microsecond before", 7)
	setClockRow(t, s, "old", expires)
	is("when it expires", 5)
	setClockRow(t, s, "old", epoch)
	is("set back", 7)
	putOnClockRow(t, s, "acme", nil)
	testkit.Eventually(t, "its end by PostgreSQL's clock", func() bool {
		return n.meets(t, "acme") == 5 && other.meets(t, "acme") == 5 &&
			len(planstest.Must[*plans.List[*plans.Override]](t)(s.ListOverrides(t.Context(), "acme", plans.Page{})).Items) == 0
	})
}
