package events

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/client"
	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func poolOf(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), pgtest.NewDatabase(t), postgres.PoolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// patient is a node's Numberer that a slow machine ends at nothing.
func patient(pool *pgxpool.Pool) *Numberer {
	n := NewNumberer(pool, MinRetention, nil)
	n.Within = testkit.Patience
	return n
}

func exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// named is an event that its plan's key tells apart from others.
func named(name string) Event {
	return Event{Type: PlanPublished, At: 1, Data: client.EventData{Plan: name}}
}

// names are the names of events, in their order.
func names(shown []Shown) string {
	var all []string
	for _, e := range shown {
		_, name, _ := strings.Cut(string(e.Data), `"plan": "`)
		all = append(all, strings.TrimSuffix(name, `"}`))
	}
	return strings.Join(all, " ")
}

// reader pages through the feed, and keeps what it has read.
type reader struct {
	t    testing.TB
	pool *pgxpool.Pool
	last int64
	all  []Shown
}

func (r *reader) read() {
	r.t.Helper()
	for {
		some, err := Read(r.t.Context(), r.pool, Filter{After: r.last}, 2)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(some) == 0 {
			return
		}
		r.all, r.last = append(r.all, some...), some[len(some)-1].ID
	}
}

func begin(t testing.TB, pool *pgxpool.Pool, events ...Event) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err == nil {
		err = Write(t.Context(), tx, events...)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	return tx
}

func commit(t testing.TB, txs ...pgx.Tx) {
	t.Helper()
	for _, tx := range txs {
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// numberAtInsert is the version that would be wrong: an event has its id when it is written.
const numberAtInsert = `
	CREATE FUNCTION at_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO events SELECT NEW.seq, NEW.type, NEW.at, NEW.customer, NEW.test_clock, NEW.data, clock_timestamp();
		RETURN NULL;
	END $$;
	CREATE TRIGGER at_insert BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION at_insert()`

// Transactions that are held open commit in another order than they wrote, and after others that began
// later were read. Who asks again after the last id misses none of them, and sees none twice. The same
// reader misses one where ids are given at the insert.
func TestReadersMissNothingThatCommitsLate(t *testing.T) {
	t.Parallel()
	for _, broken := range []bool{false, true} {
		t.Run(fmt.Sprintf("broken=%t", broken), func(t *testing.T) {
			t.Parallel()
			pool := poolOf(t)
			if broken {
				exec(t, pool, numberAtInsert)
			}
			n := patient(pool)
			r := &reader{t: t, pool: pool}
			look := func() {
				t.Helper()
				if err := n.Number(t.Context()); err != nil {
					t.Fatal(err)
				}
				r.read()
			}
			first := begin(t, pool, named("first"))
			second := begin(t, pool, named("second"), named("second-too"))
			third := begin(t, pool, named("third"))
			look()
			commit(t, third)
			look()
			if got := names(r.all); got != "third" {
				t.Fatalf("read %q", got)
			}
			gone := begin(t, pool, named("rolled-back"))
			commit(t, first)
			look()
			if err := gone.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			commit(t, second, begin(t, pool, named("fourth")))
			look()
			look()
			const all = "third first second second-too fourth"
			if got := names(r.all); (got == all) == broken {
				t.Errorf("read %q", got)
			}
			for i, e := range r.all {
				if !broken && e.ID != int64(i+1) {
					t.Errorf("event %d has id %d", i+1, e.ID)
				}
			}
		})
	}
}

// Writers, some of which roll back or hold their transactions open, beside several nodes that give ids
// and a reader: each event that was committed is read once, in the order of ids that have no gap. Those
// of one transaction keep their order.
func TestNodesNumberTogether(t *testing.T) {
	t.Parallel()
	pool := poolOf(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	nodes := make([]*Numberer, 3)
	var numbering, writing sync.WaitGroup
	for i := range nodes {
		nodes[i] = patient(pool)
		numbering.Go(func() {
			for ctx.Err() == nil {
				if err := nodes[i].Number(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	const writers, rounds = 4, 60
	var want []string
	var mu sync.Mutex
	for w := range writers {
		writing.Go(func() {
			for round := range rounds {
				one, two := fmt.Sprintf("%d.%d.a", w, round), fmt.Sprintf("%d.%d.b", w, round)
				tx, err := pool.Begin(t.Context())
				if err == nil {
					err = Write(t.Context(), tx, named(one), named(two))
				}
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Duration((w*7+round*3)%11) * time.Millisecond)
				if round%5 == 4 {
					err = tx.Rollback(t.Context())
				} else if err = tx.Commit(t.Context()); err == nil {
					mu.Lock()
					want = append(want, one, two)
					mu.Unlock()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	r := &reader{t: t, pool: pool}
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
			r.read()
		}
	}
	testkit.Eventually(t, "all events to be shown", func() bool { r.read(); return len(r.all) >= len(want) })
	stop()
	numbering.Wait()
	r.read()
	for i, e := range r.all {
		if e.ID != int64(i+1) {
			t.Fatalf("event %d has id %d", i+1, e.ID)
		}
	}
	got := strings.Fields(names(r.all))
	for _, w := range want {
		if i := slices.Index(got, w); i < 0 || strings.HasSuffix(w, "a") && slices.Index(got, strings.TrimSuffix(w, "a")+"b") < i {
			t.Errorf("%s is missing, or in the wrong order", w)
		}
	}
	if sum := nodes[0].Numbered() + nodes[1].Numbered() + nodes[2].Numbered(); len(got) != len(want) || sum != int64(len(want)) {
		t.Errorf("%d events of %d are read, and %d have ids", len(got), len(want), sum)
	}
}

// A node that holds the turn and does not go on keeps nobody waiting, and when it dies its events
// get ids from another.
func TestANodeThatDiesWhileNumbering(t *testing.T) {
	t.Parallel()
	pool := poolOf(t)
	commit(t, begin(t, pool, named("one"), named("two"), named("three")))
	dying := begin(t, pool)
	if done, more, err := number(t.Context(), dying, 2); err != nil || done != 2 || !more {
		t.Fatal(done, more, err)
	}
	n := patient(pool)
	if err := n.Number(t.Context()); err != nil || n.Numbered() != 0 {
		t.Fatal(n.Numbered(), err)
	}
	if err := dying.Conn().Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = dying.Rollback(t.Context()) // gives the connection back
	r := &reader{t: t, pool: pool}
	testkit.Eventually(t, "the others to go on", func() bool {
		if err := n.Number(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.read()
		return len(r.all) > 0
	})
	if got := names(r.all); got != "one two three" || r.last != 3 {
		t.Errorf("read %q up to %d", got, r.last)
	}
}

// What is older than the retention goes in pieces, by the time at which it got its id. Numbers go on
// where they were, also where no event is left.
func TestOldEventsGo(t *testing.T) {
	t.Parallel()
	pool := poolOf(t)
	n := patient(pool)
	exec(t, pool, `INSERT INTO events SELECT i, 'plan.published', 1, NULL, NULL, '{}', clock_timestamp() - interval '48 hours' - interval '1 minute' FROM generate_series(1, $1::int) i`,
		2*trimRows+3)
	exec(t, pool, `UPDATE event_number SET number = $1`, 2*trimRows+3)
	left := func() (ids []int64) {
		rows, _ := pool.Query(t.Context(), `SELECT id FROM events ORDER BY id`)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	exec(t, pool, `UPDATE events SET numbered_at = clock_timestamp() - interval '47 hours' WHERE id > $1`, 2*trimRows)
	if err := n.trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := left(); !slices.Equal(got, []int64{2*trimRows + 1, 2*trimRows + 2, 2*trimRows + 3}) {
		t.Errorf("left are %v", got)
	}
	exec(t, pool, `UPDATE events SET numbered_at = clock_timestamp() - interval '49 hours'`)
	if err := n.trim(t.Context()); err != nil || len(left()) > 0 {
		t.Fatal(err, left())
	}
	commit(t, begin(t, pool, named("next")))
	if err := n.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := left(); !slices.Equal(got, []int64{2*trimRows + 4}) {
		t.Errorf("after that %v", got)
	}
}

// An erasure that comes while an event gets its id finds it where it is then.
func TestScrubFindsWhatIsBeingNumbered(t *testing.T) {
	t.Parallel()
	pool := poolOf(t)
	commit(t, begin(t, pool, Event{Type: CreditGranted, At: 1, Customer: 7, Data: client.EventData{ID: "ada"}}))
	numbering, erasing := begin(t, pool), begin(t, pool)
	if done, _, err := number(t.Context(), numbering, 10); err != nil || done != 1 {
		t.Fatal(done, err)
	}
	scrubbed := make(chan error, 1)
	go func() { scrubbed <- Scrub(t.Context(), erasing, 7) }()
	testkit.Eventually(t, "the erasure to wait", func() bool {
		var waiting bool
		err := pool.QueryRow(t.Context(),
			`SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database())`).Scan(&waiting)
		return err == nil && waiting
	})
	commit(t, numbering)
	if err := <-scrubbed; err != nil {
		t.Fatal(err)
	}
	commit(t, erasing)
	r := &reader{t: t, pool: pool}
	if r.read(); len(r.all) != 1 || string(r.all[0].Data) != "{}" {
		t.Errorf("read %+v", r.all)
	}
}

// The ids of an erased customer's credits go from events that wait and from those that are shown, while
// others are given ids. Nobody waits for a deadlock.
func TestScrubBesideNumbering(t *testing.T) {
	t.Parallel()
	pool := poolOf(t)
	n := patient(pool)
	credit := Event{Type: CreditGranted, At: 1, Customer: 7, Data: client.EventData{ID: "ada"}}
	other := Event{Type: CreditGranted, At: 1, Customer: 8, Data: client.EventData{ID: "bob"}}
	ctx, stop := context.WithCancel(t.Context())
	var numbering sync.WaitGroup
	numbering.Go(func() {
		for ctx.Err() == nil {
			if err := n.Number(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	const rounds = 100
	for range rounds {
		commit(t, begin(t, pool, credit, other, credit))
		tx := begin(t, pool)
		if err := Scrub(t.Context(), tx, 7); err != nil {
			t.Fatal(err)
		}
		commit(t, tx)
	}
	testkit.Eventually(t, "all to have ids", func() bool { return n.Numbered() == 3*rounds })
	stop()
	numbering.Wait()
	var ada, bob int
	if err := pool.QueryRow(t.Context(),
		`SELECT count(*) FILTER (WHERE data::text LIKE '%ada%'), count(*) FILTER (WHERE data::text LIKE '%bob%') FROM events`).Scan(&ada, &bob); err != nil {
		t.Fatal(err)
	}
	if ada != 0 || bob != rounds {
		t.Errorf("%d events name her, and %d him", ada, bob)
	}
}

// Each way to ask reaches the rows by an index, however many there are.
func TestEventsAreFoundByTheirIndex(t *testing.T) {
	t.Parallel()
	pool := poolOf(t)
	exec(t, pool, `INSERT INTO events SELECT i, CASE WHEN i % 1000 = 0 THEN 'plan.published' ELSE 'invoice.paid' END, 1, 1 + i % 2000, NULL, '{}', clock_timestamp()
		FROM generate_series(1, 20000) i`)
	exec(t, pool, `ANALYZE events`)
	for index, f := range map[string]Filter{
		"events_pkey": {After: 19000}, "events_type": {Type: PlanPublished}, "events_customer": {Customer: 5, Type: InvoicePaid},
	} {
		statement, args := f.query(100)
		rows, _ := pool.Query(t.Context(), "EXPLAIN "+statement, args...)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if plan := strings.Join(lines, "\n"); err != nil || !strings.Contains(plan, index) || strings.Contains(plan, "Seq Scan on events") {
			t.Errorf("%s: %v\n%s", index, err, plan)
		}
	}
}
