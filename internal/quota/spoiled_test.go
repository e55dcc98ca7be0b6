package quota

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/quotatest"
)

// TestMalformedRowIsTold: of what is in one transaction, one customer's operation cannot be done,
// for its row was spoiled by hand. That one is told, and logged with its customer; whatever else
// is in the transaction is done once.
func TestMalformedRowIsTold(t *testing.T) {
	const spoiled = 1
	for name, submit := range map[string]func(context.Context, *Engine, *model.Target, *model.Target) func() error{
		"a plain hit": func(_ context.Context, e *Engine, bad, _ *model.Target) func() error {
			h := e.handOver(bad, 1)[0]
			return func() error { <-h.Done; return h.Result.Err }
		},
		"a hit with an id": func(ctx context.Context, e *Engine, bad, _ *model.Target) func() error {
			o := e.worker(bad).Submit("", &model.Hit{Target: bad, Cost: 1, ID: model.NewID("hit", "bad")})
			return func() error { return o.Wait(ctx, true).Err }
		},
		"one of an atomic batch": func(ctx context.Context, e *Engine, bad, good *model.Target) func() error {
			return e.together(ctx, []model.Hit{{Target: good, Cost: 1}, {Target: bad, Cost: 1, ID: model.NewID("hit", "bad")}, {Target: good, Cost: 1000}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, ctx := newTestDB(t), testkit.Context(t)
			var log pgtest.Log
			e, targets := db.oneWorker(ctx, t, &log, 6)
			db.Exec(ctx, t, "UPDATE counters SET state[3] = 0, version = version + 1 WHERE customer = $1", spoiled) // a bucket of no limit
			bad, good := targets[spoiled-1], targets[4]
			if model.CompareKeys(good.Counters[0].Key, bad.Counters[0].Key) > 0 {
				t.Fatal("the other of the batch must be locked first")
			}
			plain := append(e.handOver(good, 2, 3), e.handOver(targets[5], 2, 3)...)
			id := e.worker(targets[1]).Submit("", &model.Hit{Target: targets[1], Cost: 5, ID: model.NewID("hit", "good")})
			both := e.together(ctx, []model.Hit{{Target: targets[2], Cost: 5}, {Target: targets[3], Cost: 5, ID: model.NewID("hit", "both")}})
			badly := submit(ctx, e, bad, good)
			behind := e.worker(good).Submit("", &model.Hit{Target: good, Cost: 4, ID: model.NewID("hit", "behind")})
			if e.workers[0].Queued() != 2+2+1+1+1+1 {
				t.Fatalf("%d wait", e.workers[0].Queued())
			}
			before := e.Stats().Batches
			e.drain(ctx, t)
			if err := badly(); !errors.Is(err, session.ErrInternal) {
				t.Errorf("the spoiled one: %v", err)
			}
			if n := log.Count("customer_id=1 meter_id=1"); n != 1 || log.Count("level=ERROR") != 1 {
				t.Errorf("the log does not name the customer once:\n%s", log.String())
			}
			for i, h := range plain {
				if <-h.Done; h.Result.Err != nil || !h.Result.Decision.Allowed {
					t.Errorf("plain hit %d: %s, %v", i, h.Result.Decision.String(), h.Result.Err)
				}
			}
			for i, o := range []locked.Once{id, behind} {
				if r := o.Wait(ctx, true); r.Err != nil || !r.Decision.Allowed || r.Decision.Replayed {
					t.Errorf("hit %d with an id: %s, %v", i, r.Decision.String(), r.Err)
				}
			}
			if err := both(); err != nil {
				t.Errorf("the atomic batch: %v", err)
			}
			for i, units := range []int64{0, 1 + 5, 1 + 5, 1 + 5, 1 + 2 + 3 + 4, 1 + 2 + 3} {
				if i != spoiled-1 {
					e.used(ctx, t, targets[i], units)
				}
			}
			if n := e.Stats().Batches - before; n != 1 {
				t.Errorf("%d transactions, want the one", n)
			}
			reconciled(t, db)
		})
	}
}

// TestMalformedRows: each row that the model would not write is an internal error of its own
// customer's, whoever reads the row, and the log names it. Nothing is charged, and others go on.
func TestMalformedRows(t *testing.T) {
	limits := map[string]model.Spec{
		"fixed":   {Algorithm: "fixed_window", Limit: 100, Window: "1h"},
		"first":   {Algorithm: "fixed_window", Align: "first_hit", Limit: 100, Window: "1h"},
		"sliding": {Algorithm: "sliding_window", Limit: 100, Window: "1h"},
		"bucket":  {Algorithm: "token_bucket", Limit: 100, Window: "1h"},
		"log":     {Algorithm: "sliding_log", Limit: 100, Window: "1h"},
		"seats":   {Algorithm: "allocation", Limit: 100},
	}
	for name, c := range map[string]struct{ limit, set string }{
		"a level below 0":           {"fixed", "state[2] = -1"},
		"a level past its end":      {"fixed", "state[2] = 9223372036854775807"},
		"half a bucket":             {"fixed", "state = state || 5::bigint"},
		"a null":                    {"fixed", "state[2] = NULL"},
		"two dimensions":            {"fixed", "state = ARRAY[ARRAY[1, 2, 3, 4], ARRAY[5, 6, 7, 8]]"},
		"an instant below 0":        {"fixed", "at = -1"},
		"an instant in no year":     {"fixed", "at = 9223372036854775807"},
		"a version below 0":         {"fixed", "version = -5"},
		"a window that never began": {"first", "state[3] = -1"},
		"the window before":         {"sliding", "state[3] = -1"},
		"a bucket of no limit":      {"bucket", "state[3] = 0"},
		"a bucket of no such limit": {"bucket", "state[3] = -9223372036854775808"},
		"more than full":            {"bucket", "state[2] = -1"},
		"a log that ends early":     {"log", "state[3] = 100"},
		"a log of less than none":   {"log", "state[3] = -6"}, // an endless loop, without a check
		"a log without blocks":      {"log", "state = ARRAY[state[1], 1, 1, state[4], state[5]]"},
		"a block below 0":           {"log", "state[6] = -1"},
		"a block in no window":      {"log", "state[6] = 9223372036854775807"},
		"seats below 0":             {"seats", "state[2] = -1"},
		"units below 0":             {"fixed", "units = -1"},
	} {
		t.Run(name, func(t *testing.T) {
			db, ctx := newTestDB(t), testkit.Context(t)
			var log pgtest.Log
			e := db.handEngine(t, quotatest.NewClock(quotatest.Epoch), func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			spec := limits[c.limit]
			spec.Name = c.limit
			limit := quotatest.Compile(t, spec)
			bad, good := quotatest.Target(1, 1, 1, limit), quotatest.Target(2, 1, 1, limit)
			hits := []model.Hit{{Target: bad, Cost: 1}, {Target: good, Cost: 1}}
			e.sendBatch(ctx, hits)
			db.Exec(ctx, t, "UPDATE counters SET "+c.set+" WHERE customer = 1")
			total := func() (total int64) {
				_ = db.Pool.QueryRow(ctx, "SELECT total FROM counters WHERE customer = 1").Scan(&total)
				return total
			}
			before := total()
			check := func(by string, of error, other error) {
				t.Helper()
				if !errors.Is(of, session.ErrInternal) {
					t.Errorf("%s: %v", by, of)
				}
				if other != nil {
					t.Errorf("%s, of another: %v", by, other)
				}
			}
			bad.Forget()
			results, _ := e.sendBatch(ctx, hits) // the lane reads the row, and hands over
			check("a hit", results[0].Err, results[1].Err)
			bad.Forget()
			alone, _ := e.sendBatch(ctx, hits[:1])
			check("a hit that is read alone", alone[0].Err, nil)
			hits[0].ID, hits[1].ID = model.NewID("hit", "one"), model.NewID("hit", "two")
			results, _ = e.sendBatch(ctx, hits)
			check("a hit with an id", results[0].Err, results[1].Err)
			if log.Count("customer_id=1 meter_id=1") != 3 || log.Count("level=ERROR") != 3 {
				t.Errorf("the log:\n%s", log.String())
			}
			if c.set == "units = -1" {
				return // who only looks does not ask for the units of the hour
			}
			looks := make([]queue.Result, 2)
			e.lookAll(ctx, []model.Hit{{Target: bad}, {Target: good}}, looks)
			check("a look", looks[0].Err, looks[1].Err)
			if _, err := e.Standings(ctx, []*model.Target{bad}); !errors.Is(err, session.ErrInternal) {
				t.Errorf("a standing: %v", err)
			}
			if full, err := e.Fullness(ctx, []*model.Target{bad, good}); err != nil || len(full) != 1 || full[0].Customer != 2 {
				t.Errorf("the fullest: %+v %v", full, err)
			}
			if after := total(); after != before {
				t.Errorf("%d were charged", after-before)
			}
		})
	}
}

// oneWorker is an engine whose worker stands still, and n customers' targets that were each charged
// one unit.
func (db *testDB) oneWorker(ctx context.Context, t *testing.T, log *pgtest.Log, n int64) (e *Engine, targets []*model.Target) {
	t.Helper()
	e = db.handEngine(t, quotatest.NewClock(quotatest.Epoch), func(o *Options) { o.Log = slog.New(slog.NewTextHandler(log, nil)) })
	limit := quotatest.Limit(t, "b", "token_bucket", "1h", 1000)
	for customer := int64(1); customer <= n; customer++ {
		target := quotatest.Target(customer, 1, 1, limit)
		if r, _ := e.sendBatch(ctx, []model.Hit{{Target: target, Cost: 1}}); r[0].Err != nil {
			t.Fatal(r[0].Err)
		}
		targets = append(targets, target)
	}
	return e, targets
}

// together submits hits to a worker that stands still, all or none, and returns how to wait for
// them: with an error unless all were charged.
func (e *Engine) together(ctx context.Context, hits []model.Hit) (wait func() error) {
	queued, ended := e.workers[0].Queued(), make(chan error, 1)
	go func() {
		_, together, err := e.DecideTogether(ctx, hits)
		if err == nil && !together {
			err = errors.New("refused")
		}
		ended <- err
	}()
	for until := time.Now().Add(testkit.Patience); e.workers[0].Queued() == queued && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	return func() error { return <-ended }
}
