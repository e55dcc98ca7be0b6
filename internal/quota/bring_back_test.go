package quota

import (
	"errors"
	"testing"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// The clock was ahead for a while, and two nodes charged, and remember what they charged. One brings the
// counters back. The other believes neither its row nor its refusals from before, and judges by the
// clock: nothing that was charged is given away.
func TestBringBack(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch+7200e6)
	here, there := db.startEngine(t, clock), db.startEngine(t, clock)
	full, warm := quotatest.Target(1001, 1, 1, quotatest.Window(t, "a", 10, "1h")), quotatest.Target(1002, 1, 1, quotatest.Window(t, "a", 10, "1h"))
	value := quotatest.PerIP(t, model.Spec{Name: "v", Algorithm: "token_bucket", Limit: 10, Window: "1h"})
	for target, cost := range map[*model.Target]int64{full: 10, warm: 4, quotatest.IP(value, "x"): 7} {
		if d, err := here.Decide(ctx, target, cost); err != nil || !d.Allowed {
			t.Fatal(d.String(), err)
		}
	}
	decide := func(e *Engine, target *model.Target, cost int64, allowed bool, ahead, wait int64) {
		t.Helper()
		d, err := e.Decide(ctx, target, cost)
		if err != nil || d.Allowed != allowed || d.Ahead != ahead || d.FromNow(d.RetryAfter()) != wait {
			t.Errorf("%s, %v: ahead %d, wait %d; want %v, %d, %d", d.String(), err, d.Ahead, d.FromNow(d.RetryAfter()), allowed, ahead, wait)
		}
	}
	_, hourEnds := full.RunningHour(quotatest.Epoch)
	left := hourEnds - quotatest.Epoch // of the window
	decide(here, full, 1, false, 0, left)
	clock.Set(quotatest.Epoch)
	before := here.Stats()
	decide(here, full, 1, false, 7200e6, left+7200e6)
	decide(here, full, 1, false, 7200e6, left+7200e6) // from memory
	if after := here.Stats(); after.Ahead != before.Ahead+2 || after.FromMemory != before.FromMemory+1 {
		t.Errorf("%+v after %+v", after, before)
	}

	ahead := []locked.Ahead{{Target: full}, {Target: warm}, {Target: value}, {Target: value, Attribute: model.AttributeKey("ip", "x")}}
	newer := quotatest.Target(1002, 1, 0, quotatest.Window(t, "a", 10, "1h"))
	var stale *model.StaleError
	if b := there.BringBack(ctx, []locked.Ahead{{Target: newer}}); !errors.As(b[0].Err, &stale) || b[0].Changed {
		t.Errorf("of an older change: %+v", b)
	}
	for i, b := range there.BringBack(ctx, ahead) {
		if b.Err != nil || !b.Changed {
			t.Errorf("counter %d: %+v", i, b)
		}
	}
	for i, b := range there.BringBack(ctx, ahead) {
		if b.Err != nil || b.Changed {
			t.Errorf("counter %d, again: %+v", i, b)
		}
	}
	clock.Set(quotatest.Epoch + 1500e3) // so long the refusal is believed
	decide(here, full, 1, false, 0, left-1500e3)
	decide(here, warm, 6, true, 0, 0)
	decide(here, warm, 1, false, 0, left-1500e3)
	if d, err := here.Decide(ctx, quotatest.IP(value, "x"), 4); err != nil || d.Allowed || d.Ahead != 0 {
		t.Errorf("of a value: %s, %v", d.String(), err)
	}
	for customer, total := range map[int64]int64{1001: 10, 1002: 10} {
		if row := db.counter(t, customer); row.Total != total || row.At > quotatest.Epoch+1500e3 {
			t.Errorf("customer %d: %+v", customer, row)
		}
	}
}
