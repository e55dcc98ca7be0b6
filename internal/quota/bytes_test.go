package quota

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// maxBytes is what a counter with two limits, a fixed window and a token bucket, may take
// on disk, in the table and its index, after a vacuum. For each limit the row says until when its bucket
// counts, in 8 bytes: a limit that left a plan may come back.
const maxBytes = 280

// sizes are bytes per counter.
type sizes struct{ heap, index, toast int64 }

func (s sizes) total() int64 { return s.heap + s.index + s.toast }

func (db *testDB) sizes(ctx context.Context, t testing.TB, counters int) (s sizes) {
	t.Helper()
	var total int64
	if err := db.Pool.QueryRow(ctx, `SELECT pg_relation_size('counters'), pg_indexes_size('counters'), pg_total_relation_size('counters')`).
		Scan(&s.heap, &s.index, &total); err != nil {
		t.Fatal(err)
	}
	n := int64(counters)
	return sizes{(s.heap + n - 1) / n, (s.index + n - 1) / n, (total - s.heap - s.index + n - 1) / n}
}

// hotUpdates are the updates since the table was made, and how many of them were HOT. A
// session tells at its end.
func (f *filled) hotUpdates(ctx context.Context, t testing.TB, atLeast int64) (all, hot int64) {
	t.Helper()
	if err := f.engine.Close(ctx); err != nil {
		t.Fatal(err)
	}
	f.engine = f.db.startEngine(t, f.clock, withoutMemory)
	return f.db.hotUpdates(ctx, t, atLeast)
}

func (db *testDB) hotUpdates(ctx context.Context, t testing.TB, atLeast int64) (all, hot int64) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d updates are known", atLeast), func() bool {
		if err := db.Pool.QueryRow(ctx, "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'counters'").Scan(&all, &hot); err != nil {
			t.Fatal(err)
		}
		return all >= atLeast
	})
	return all, hot
}

// filled is n counters of one kind, written through an engine.
type filled struct {
	db      *testDB
	clock   *quotatest.Clock
	engine  *Engine
	targets []*model.Target
	order   *rand.Rand
}

// fill writes n counters through an engine: all at once, or a twentieth of what is there
// at a time with a vacuum after each, as autovacuum keeps up with a table that grows.
func fill(ctx context.Context, t testing.TB, n int, grown bool, specs ...model.Spec) *filled {
	t.Helper()
	f := &filled{db: newTestDB(t), clock: quotatest.NewClock(quotatest.Epoch), order: rand.New(rand.NewPCG(1, 2))}
	f.db.Exec(ctx, t, "ALTER TABLE counters SET (autovacuum_enabled = off)")
	f.engine = f.db.startEngine(t, f.clock, withoutMemory)
	var limits []*model.Limit
	for i, s := range specs {
		s.Name = fmt.Sprint("l", i)
		limits = append(limits, quotatest.Compile(t, s))
	}
	var all []*model.Target
	for len(all) < n {
		more := n
		if grown {
			more = max(n/50, len(all)/20)
		}
		f.targets = nil
		for range min(more, n-len(all)) {
			f.targets = append(f.targets, quotatest.Target(quotatest.FreshCustomers(1), 1, 1, limits...))
		}
		f.round(ctx, t)
		f.db.Exec(ctx, t, "VACUUM counters")
		all = append(all, f.targets...)
	}
	f.targets = all
	return f
}

// round hits every counter once, in any order: customers do not come in that of their rows.
func (f *filled) round(ctx context.Context, t testing.TB) {
	t.Helper()
	f.clock.Set(f.clock.At.Load() + 1e6)
	hits := make([]model.Hit, len(f.targets))
	for i, of := range f.order.Perm(len(hits)) {
		hits[i] = model.Hit{Target: f.targets[of], Cost: 1}
	}
	for some := range slices.Chunk(hits, 250) {
		for i, r := range f.engine.DecideAll(ctx, some) {
			if r.Err != nil || !r.Decision.Allowed {
				t.Fatalf("hit %d: %v %v", i, r.Decision.Allowed, r.Err)
			}
		}
	}
}

var pair = []model.Spec{{Algorithm: "fixed_window", Limit: 1e6, Window: "1h"}, {Algorithm: "token_bucket", Limit: 1e6, Window: "1h"}}

// TestBytesPerCounter prints what a counter takes for each algorithm, as it is written
// first and after ten rounds of hits, each vacuumed, and bounds it for the usual pair, in a
// table that has grown and in one that was filled at once.
func TestBytesPerCounter(t *testing.T) {
	ctx := testkit.Context(t)
	few, many := quotatest.Sized(1000, 1000, 100_000), quotatest.Sized(15_000, 15_000, 1_000_000)
	t.Logf("%-42s %26s %34s", "", "first: heap index toast sum", "after 10 hits: heap index toast sum hot")
	for _, c := range []struct {
		name  string
		specs []model.Spec
	}{
		{"fixed_window and token_bucket", pair},
		{"fixed_window and token_bucket, all at once", pair},
		{"fixed_window", pair[:1]},
		{"token_bucket", pair[1:]},
		{"first_hit", []model.Spec{{Algorithm: "fixed_window", Limit: 1e6, Window: "1h", Align: "first_hit"}}},
		{"sliding_window", []model.Spec{{Algorithm: "sliding_window", Limit: 1e6, Window: "1h"}}},
		{"allocation", []model.Spec{{Algorithm: "allocation", Limit: 1e6}}},
		{"sliding_log of up to 10 entries", []model.Spec{{Algorithm: "sliding_log", Limit: 1000, Window: "10s"}}},
		{"no limits", nil},
	} {
		n, bounded := few, strings.HasPrefix(c.name, "fixed_window and token_bucket")
		if bounded {
			n = many
		}
		f := fill(ctx, t, n, !strings.HasSuffix(c.name, "at once"), c.specs...)
		first := f.db.sizes(ctx, t, n)
		before, hotBefore := f.hotUpdates(ctx, t, 0)
		for range 10 {
			f.round(ctx, t)
		}
		all, hot := f.hotUpdates(ctx, t, before+int64(10*n))
		f.db.Exec(ctx, t, "VACUUM counters")
		later := f.db.sizes(ctx, t, n)
		t.Logf("%-42s %8d %5d %5d %5d %16d %5d %5d %5d %3d%%", c.name, first.heap, first.index, first.toast, first.total(),
			later.heap, later.index, later.toast, later.total(), (hot-hotBefore)*100/(all-before))
		if bounded && max(first.total(), later.total()) > maxBytes {
			t.Errorf("%s: %d and %d bytes per counter, more than %d", c.name, first.total(), later.total(), maxBytes)
		}
	}
}

// longLog gives all counters a log of that many entries.
func (f *filled) longLog(ctx context.Context, t testing.TB, entries int) {
	t.Helper()
	rows, at := make([]model.Row, 1), f.clock.At.Load()
	for i := range entries {
		f.targets[0].Charge(rows, 1, at+int64(i), nil)
	}
	f.clock.Set(at + int64(entries))
	f.db.Exec(ctx, t, "UPDATE counters SET state = $1, at = $2", rows[0].State, at+int64(entries)-1)
	f.db.Exec(ctx, t, "VACUUM FULL counters")
}

// wal is how many bytes of WAL the statements between wrote, full page images included.
func (db *testDB) wal(ctx context.Context, t testing.TB, between func()) (n int64) {
	t.Helper()
	var before string
	if err := db.Pool.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()::text").Scan(&before); err != nil {
		t.Fatal(err)
	}
	between()
	if err := db.Pool.QueryRow(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $1::text::pg_lsn)::bigint", before).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// BenchmarkLongLogs is a hit of a sliding_log by the entries of the log and by how the column is
// stored. An operation is a hit on each of 300 counters.
func BenchmarkLongLogs(b *testing.B) {
	const n = 300
	for _, entries := range []int{10, 1000} {
		for _, storage := range []string{"EXTENDED", "EXTERNAL", "MAIN"} {
			b.Run(fmt.Sprint(entries, "/", storage), func(b *testing.B) {
				ctx := testkit.Context(b)
				f := fill(ctx, b, n, false, model.Spec{Algorithm: "sliding_log", Limit: 1000, Window: fmt.Sprint(entries, "us")})
				f.db.Exec(ctx, b, "ALTER TABLE counters ALTER COLUMN state SET STORAGE "+storage)
				f.longLog(ctx, b, entries)
				f.next(ctx, b, 10) // touches all pages: what follows writes no full page images
				b.ResetTimer()
				bytes := f.db.wal(ctx, b, func() { f.next(ctx, b, b.N) })
				b.StopTimer()
				f.db.Exec(ctx, b, "VACUUM counters")
				s := f.db.sizes(ctx, b, n)
				b.ReportMetric(float64(bytes)/float64(n*b.N), "WAL-B/hit")
				b.ReportMetric(float64(s.heap+s.toast), "B/counter")
			})
		}
	}
}

// next hits every counter so many times, at one instant after the other.
func (f *filled) next(ctx context.Context, t testing.TB, rounds int) {
	t.Helper()
	for range rounds {
		f.clock.Set(f.clock.At.Load() - 1e6 + 1) // round adds a second
		f.round(ctx, t)
	}
}
