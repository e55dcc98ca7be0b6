package quota

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota/ledger"
	"quotad/internal/quota/model"
	"quotad/internal/quota/quotatest"
	"quotad/internal/quota/session"
)

// TestPanicOfTheModelIsTold: of what is in one transaction, the model cannot do one customer's
// operation, for its row was spoiled by hand. That one is told, and logged with its customer;
// whatever else is in the transaction is done once.
func TestPanicOfTheModelIsTold(t *testing.T) {
	const spoiled = 1
	for name, submit := range map[string]func(context.Context, *Engine, *model.Target, *model.Target) func() error{
		"a plain hit": func(_ context.Context, e *Engine, bad, _ *model.Target) func() error {
			h := e.handOver(bad, 1)[0]
			return func() error { <-h.Done; return h.Result.Err }
		},
		"a hit with an id": func(ctx context.Context, e *Engine, bad, _ *model.Target) func() error {
			o := e.ledger(bad).Submit("", &model.Hit{Target: bad, Cost: 1, ID: model.NewID("hit", "bad")})
			return func() error { return o.Wait(ctx).Err }
		},
		"one of an atomic batch": func(ctx context.Context, e *Engine, bad, good *model.Target) func() error {
			return e.together(ctx, []model.Hit{{Target: good, Cost: 1}, {Target: bad, Cost: 1, ID: model.NewID("hit", "bad")}, {Target: good, Cost: 1000}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, ctx := newTestDB(t), pgtest.Context(t)
			var log pgtest.Log
			e, targets := db.oneLedger(ctx, t, &log, 6)
			db.Exec(ctx, t, "UPDATE counters SET state[3] = 0, version = version + 1 WHERE customer = $1", spoiled) // a division by zero
			bad, good := targets[spoiled-1], targets[4]
			if model.CompareKeys(good.Counters[0].Key, bad.Counters[0].Key) > 0 {
				t.Fatal("the other of the batch must be locked first")
			}
			plain := append(e.handOver(good, 2, 3), e.handOver(targets[5], 2, 3)...)
			id := e.ledger(targets[1]).Submit("", &model.Hit{Target: targets[1], Cost: 5, ID: model.NewID("hit", "good")})
			both := e.together(ctx, []model.Hit{{Target: targets[2], Cost: 5}, {Target: targets[3], Cost: 5, ID: model.NewID("hit", "both")}})
			badly := submit(ctx, e, bad, good)
			behind := e.ledger(good).Submit("", &model.Hit{Target: good, Cost: 4, ID: model.NewID("hit", "behind")})
			if e.ledgers[0].Queued() != 2+2+1+1+1+1 {
				t.Fatalf("%d wait", e.ledgers[0].Queued())
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
			for i, o := range []ledger.Once{id, behind} {
				if r := o.Wait(ctx); r.Err != nil || !r.Decision.Allowed || r.Decision.Replayed {
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
			if n := e.Stats().Batches - before; n != 2 {
				t.Errorf("%d transactions, want the one that is given up and another", n)
			}
			reconciled(t, db)
		})
	}
}

// oneLedger is an engine whose ledger stands still, and n customers' targets that were each charged
// one unit.
func (db *testDB) oneLedger(ctx context.Context, t *testing.T, log *pgtest.Log, n int64) (e *Engine, targets []*model.Target) {
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

// together submits hits to a ledger that stands still, all or none, and returns how to wait for
// them: with an error unless all were charged.
func (e *Engine) together(ctx context.Context, hits []model.Hit) (wait func() error) {
	queued, ended := e.ledgers[0].Queued(), make(chan error, 1)
	go func() {
		_, together, err := e.DecideTogether(ctx, hits)
		if err == nil && !together {
			err = errors.New("refused")
		}
		ended <- err
	}()
	for until := time.Now().Add(time.Minute); e.ledgers[0].Queued() == queued && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	return func() error { return <-ended }
}
