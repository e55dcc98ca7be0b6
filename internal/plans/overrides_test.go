package plans

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota"
)

// writeOverride overrides the limit hourly, or fails the test.
func writeOverride(t testing.TB, s *Store, customer string, in OverrideInput) *Override {
	t.Helper()
	o, _, err := s.PutOverride(t.Context(), customer, "hourly", in)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// databaseNow is the database's clock, as overrides are checked by.
func databaseNow(t testing.TB, s *Store) (at time.Time) {
	t.Helper()
	if err := s.pool.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&at); err != nil {
		t.Fatal(err)
	}
	return at
}

// meets is the limit that hits of a customer on api meet now.
func meets(t testing.TB, c *Catalog, customer string) int64 {
	t.Helper()
	return limitOf(must[*quota.Target](t)(c.Resolve(t.Context(), customer, "api", 0)))
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	s, c := newNode(t, pgtest.NewDatabase(t))
	populate(t, s)
	putCustomer(t, s, "bolt", onPlan("basic"))
	ctx := t.Context()
	before := must[*quota.Target](t)(c.Resolve(ctx, "acme", "api", 0))
	old := must[*Customer](t)(s.GetCustomer(ctx, "acme"))
	expires := databaseNow(t, s).Add(time.Hour).Truncate(time.Microsecond)
	o, created, err := s.PutOverride(ctx, "acme", "hourly", OverrideInput{Limit: 7, ExpiresAt: &expires})
	if err != nil || !created || o.Name != "hourly" || o.Limit != 7 || o.Burst != nil || !o.ExpiresAt.Equal(expires) || !o.InForce {
		t.Fatalf("%+v %v %v", o, created, err)
	}
	changed := must[*Customer](t)(s.GetCustomer(ctx, "acme"))
	if changed.Change != changeNumber(t, s) || changed.ETag() == old.ETag() {
		t.Errorf("the customer's change is %d of %d", changed.Change, changeNumber(t, s))
	}
	target := must[*quota.Target](t)(c.Resolve(ctx, "acme", "api", 0))
	if limitOf(target) != 7 || target.Change != changed.Change || target.Limit(0).ID != before.Limit(0).ID {
		t.Errorf("resolved %+v", target.Limit(0))
	}
	if again := must[*quota.Target](t)(c.Resolve(ctx, "acme", "api", 0)); again != target {
		t.Error("another target for the same")
	}
	if other := must[*quota.Target](t)(c.Resolve(ctx, "bolt", "api", 0)); other.Limit(0) != before.Limit(0) {
		t.Error("the plan's own limit has changed, or is not shared any more")
	}
	if _, created, err = s.PutOverride(ctx, "acme", "hourly", OverrideInput{Limit: 0}); err != nil || created || meets(t, c, "acme") != 0 {
		t.Errorf("replaced: %v %v, now %d", created, err, meets(t, c, "acme"))
	}
	list := must[*List[*Override]](t)(s.ListOverrides(ctx, "acme", Page{}))
	if len(list.Items) != 1 || list.Items[0].Limit != 0 || list.Items[0].ExpiresAt != nil || !list.Items[0].InForce || list.Next != "" {
		t.Errorf("list: %+v", list.Items[0])
	}
	putPlan(t, s, "basic", hourly(50)) // the override stays
	if got := meets(t, c, "acme"); got != 0 {
		t.Errorf("after a new version: %d", got)
	}
	if err := s.DeleteOverride(ctx, "acme", "hourly"); err != nil || meets(t, c, "acme") != 50 {
		t.Errorf("ended: %v, now %d", err, meets(t, c, "acme"))
	}
	if err := s.DeleteOverride(ctx, "acme", "hourly"); !errors.Is(err, ErrUnknownOverride) {
		t.Errorf("ended twice: %v", err)
	}
}

func TestOverridesArePaged(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	in := hourly(5)
	for _, name := range []string{"b", "a", "c"} {
		in.Limits = append(in.Limits, Limit{"api", quota.Spec{Name: name, Algorithm: "fixed_window", Limit: 3, Window: "1d"}})
	}
	putPlan(t, s, "basic", in)
	for _, name := range []string{"c", "a", "hourly", "b"} {
		if _, _, err := s.PutOverride(t.Context(), "acme", name, OverrideInput{Limit: 1}); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	page := Page{Limit: 3}
	for more := true; more; more = page.Cursor != "" {
		list := must[*List[*Override]](t)(s.ListOverrides(t.Context(), "acme", page))
		for _, o := range list.Items {
			names = append(names, o.Name)
		}
		page.Cursor = list.Next
	}
	if !slices.Equal(names, []string{"a", "b", "c", "hourly"}) {
		t.Errorf("got %q", names)
	}
	putCustomer(t, s, "bolt", onPlan("basic"))
	cursor := must[*List[*Override]](t)(s.ListOverrides(t.Context(), "acme", Page{Limit: 1})).Next
	if _, err := s.ListOverrides(t.Context(), "bolt", Page{Cursor: cursor}); !slices.Equal(fields(err), []string{"cursor"}) {
		t.Errorf("another customer's cursor: %v", err)
	}
}

func TestOverrideFaults(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	in := hourly(5)
	in.Limits = append(in.Limits, Limit{"api", quota.Spec{Name: "rate", Algorithm: "token_bucket", Limit: 10, Window: "3600d"}})
	putPlan(t, s, "basic", in)
	before := changeNumber(t, s)
	for name, c := range map[string]struct {
		limit string
		in    OverrideInput
		want  []string
	}{
		"negative":       {"hourly", OverrideInput{Limit: -1}, []string{"limit"}},
		"huge":           {"hourly", OverrideInput{Limit: quota.MaxNumber + 1}, []string{"limit"}},
		"no bucket":      {"hourly", OverrideInput{Limit: 1, Burst: ptr(int64(1))}, []string{"burst"}},
		"burst":          {"rate", OverrideInput{Limit: 1, Burst: ptr(int64(-1))}, []string{"burst"}},
		"closed":         {"rate", OverrideInput{Limit: 0, Burst: ptr(int64(1))}, []string{"burst"}},
		"64 bits":        {"rate", OverrideInput{Limit: quota.MaxNumber}, []string{"limit"}},
		"expired":        {"hourly", OverrideInput{Limit: 1, ExpiresAt: ptr(databaseNow(t, s).Add(-time.Second))}, []string{"expires_at"}},
		"beyond RFC3339": {"hourly", OverrideInput{Limit: 1, ExpiresAt: ptr(lastInstant.Add(time.Hour))}, []string{"expires_at"}},
		"several":        {"hourly", OverrideInput{Limit: -1, ExpiresAt: ptr(time.Unix(0, 0))}, []string{"limit", "expires_at"}},
	} {
		if _, _, err := s.PutOverride(t.Context(), "acme", c.limit, c.in); !slices.Equal(fields(err), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	for _, limit := range []string{"nope", "", "a/b", "a\x00"} {
		_, _, err := s.PutOverride(t.Context(), "acme", limit, OverrideInput{Limit: 1})
		if !errors.Is(err, ErrUnknownLimit) || !strings.Contains(err.Error(), "version 2 of plan basic, which is in force for it, has hourly, rate") {
			t.Errorf("%q: %v", limit, err)
		}
	}
	for _, customer := range []string{"nope", "", "a/b"} {
		_, _, err := s.PutOverride(t.Context(), customer, "hourly", OverrideInput{Limit: 1})
		_, list := s.ListOverrides(t.Context(), customer, Page{})
		if ended := s.DeleteOverride(t.Context(), customer, "hourly"); !errors.Is(err, ErrUnknownCustomer) || !errors.Is(ended, ErrUnknownCustomer) || !errors.Is(list, ErrUnknownCustomer) {
			t.Errorf("%q: %v, %v, %v", customer, err, ended, list)
		}
	}
	if changeNumber(t, s) != before {
		t.Error("what was refused left a change")
	}
	if err := s.ArchiveCustomer(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.PutOverride(t.Context(), "acme", "hourly", OverrideInput{Limit: 1})
	if ended := s.DeleteOverride(t.Context(), "acme", "hourly"); !errors.Is(err, ErrArchived) || !errors.Is(ended, ErrArchived) {
		t.Errorf("archived: %v, %v", err, ended)
	}
}

// The plan moves on, or the customer moves to another: an override that fits no more is
// ignored, and counts again when it fits again.
func TestOverridesThatDoNotFitAreIgnored(t *testing.T) {
	t.Parallel()
	s, c := newNode(t, pgtest.NewDatabase(t))
	populate(t, s)
	bucket := hourly(10)
	bucket.Limits[0].Algorithm, bucket.Limits[0].Burst = "token_bucket", ptr(int64(20))
	putPlan(t, s, "basic", bucket)
	writeOverride(t, s, "acme", OverrideInput{Limit: 30, Burst: ptr(int64(40))})
	is := func(when string, limit, burst int64, inForce bool) {
		t.Helper()
		target := must[*quota.Target](t)(c.Resolve(t.Context(), "acme", "api", 0))
		if l := target.Limit(0); l.Limit != limit || l.Burst != burst {
			t.Errorf("%s: limit %d, burst %d", when, l.Limit, l.Burst)
		}
		list := must[*List[*Override]](t)(s.ListOverrides(t.Context(), "acme", Page{}))
		if len(list.Items) != 1 || list.Items[0].InForce != inForce {
			t.Errorf("%s: shown as %+v", when, list.Items)
		}
	}
	is("on the bucket", 30, 40, true)
	putPlan(t, s, "basic", hourly(6))
	is("on a window", 6, 0, false)
	renamed := hourly(8)
	renamed.Limits[0].Name = "other"
	putPlan(t, s, "renamed", renamed)
	putCustomer(t, s, "acme", onPlan("renamed"))
	is("on a plan without it", 8, 0, false)
	putPlan(t, s, "basic", bucket)
	putCustomer(t, s, "acme", onPlan("basic"))
	is("on the bucket again", 30, 40, true)
	writeOverride(t, s, "acme", OverrideInput{Limit: 30})
	is("without a burst of its own", 30, 30, true)
}

// setClockRow sets a test clock, as its own write does.
func setClockRow(t testing.TB, s *Store, key string, at time.Time) {
	t.Helper()
	err := s.write(t.Context(), kindClock, key, func(ctx context.Context, w *writing) error {
		_, err := w.Exec(ctx, `INSERT INTO test_clocks (key, now, change) VALUES ($1, $2, $3)
			ON CONFLICT (key) DO UPDATE SET now = excluded.now, change = excluded.change`, key, at.UnixMicro(), w.number)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// putOnClockRow puts a customer on a test clock, or on PostgreSQL's.
func putOnClockRow(t testing.TB, s *Store, customer string, clock *string) {
	t.Helper()
	err := s.write(t.Context(), kindCustomer, customer, func(ctx context.Context, w *writing) error {
		_, err := w.Exec(ctx, `UPDATE customers SET change = $2, test_clock_id = (SELECT id FROM test_clocks WHERE key = $3)
			WHERE key = $1`, customer, w.number, clock)
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
	s, c := newNode(t, url)
	_, other := newNode(t, url)
	populate(t, s)
	epoch := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC) // all of it is past for PostgreSQL
	setClockRow(t, s, "old", epoch)
	putOnClockRow(t, s, "acme", ptr("old"))
	if _, _, err := s.PutOverride(t.Context(), "acme", "hourly", OverrideInput{Limit: 7, ExpiresAt: &epoch}); !slices.Equal(fields(err), []string{"expires_at"}) ||
		!strings.Contains(err.Error(), "2001-02-03T04:05:06Z") {
		t.Errorf("at the clock's own instant: %v", err)
	}
	expires := epoch.Add(time.Hour)
	writeOverride(t, s, "acme", OverrideInput{Limit: 7, ExpiresAt: &expires})
	is := func(when string, want int64) {
		t.Helper()
		if got := meets(t, c, "acme"); got != want {
			t.Errorf("%s: meets %d, not %d", when, got, want)
		}
		began := time.Now()
		eventually(t, when, func() bool { return meets(t, other, "acme") == want })
		if took := time.Since(began); took > Freshness {
			t.Errorf("%s: the other node took %s", when, took)
		}
		list := must[*List[*Override]](t)(s.ListOverrides(t.Context(), "acme", Page{}))
		if len(list.Items) != 1 || list.Items[0].InForce != (want == 7) || list.Items[0].TestClock != "old" {
			t.Errorf("%s: shown as %+v", when, list.Items)
		}
	}
	if err := c.sweepOnce(t.Context()); err != nil {
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
	eventually(t, "its end by PostgreSQL's clock", func() bool {
		return meets(t, c, "acme") == 5 && meets(t, other, "acme") == 5 &&
			len(must[*List[*Override]](t)(s.ListOverrides(t.Context(), "acme", Page{})).Items) == 0
	})
}

// Each change of an override lets a target that was resolved before it be told from those
// after it.
func TestOverridesMakeTargetsNewer(t *testing.T) {
	t.Parallel()
	s, c := newNode(t, pgtest.NewDatabase(t))
	populate(t, s)
	last := must[*quota.Target](t)(c.Resolve(t.Context(), "acme", "api", 0)).Change
	newer := func(what string) {
		t.Helper()
		change := must[*quota.Target](t)(c.Resolve(t.Context(), "acme", "api", 0)).Change
		if change <= last || change != changeNumber(t, s) {
			t.Errorf("%s: change %d after %d", what, change, last)
		}
		last = change
	}
	writeOverride(t, s, "acme", OverrideInput{Limit: 7})
	newer("written")
	writeOverride(t, s, "acme", OverrideInput{Limit: 7})
	newer("written again")
	if err := s.DeleteOverride(t.Context(), "acme", "hourly"); err != nil {
		t.Fatal(err)
	}
	newer("deleted")
	expires := databaseNow(t, s).Add(300 * time.Millisecond)
	writeOverride(t, s, "acme", OverrideInput{Limit: 7, ExpiresAt: &expires})
	newer("with an end")
	eventually(t, "the end", func() bool { return meets(t, c, "acme") == 5 })
	newer("expired")
}
