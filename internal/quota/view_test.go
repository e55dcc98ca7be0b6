package quota

import (
	"errors"
	"math"
	"testing"
)

// TestViews: what a limit says at its edges. Random states are TestTracesModel's matter.
func TestViews(t *testing.T) {
	minute := testEpoch + 60e6
	window, closed := windowLimit(t, "w", 10, "1m"), windowLimit(t, "w", 0, "1m")
	bucket, shut := bucketLimit(t, "b", 60, "1m", 10), mustCompile(t, Spec{Name: "b", Algorithm: "token_bucket", Window: "1m"})
	empty := bucketLimit(t, "b", 60, "1m", 0)
	slow := bucketLimit(t, "b", 1, "3660d", 29166)
	for name, c := range map[string]struct {
		limit                        *Limit
		level, cost                  int64
		used, remaining, retry, back int64 // back: reset, from testEpoch on
	}{
		"untouched window":       {window, 0, 11, 0, 10, Never, 0},
		"window":                 {window, 4, 7, 4, 6, 60e6, 60e6},
		"one that fits":          {window, 4, 6, 4, 6, 0, 60e6},
		"full window":            {window, 10, 1, 10, 0, 60e6, 60e6},
		"lowered window":         {window, 25, 1, 25, 0, 60e6, 60e6},
		"closed window":          {closed, 0, 1, 0, 0, Never, 0},
		"closed and used":        {closed, 3, 1, 3, 0, Never, 60e6},
		"cost 0 on closed":       {closed, 3, 0, 3, 0, 0, 60e6},
		"untouched bucket":       {bucket, 0, 11, 0, 10, Never, 0},
		"bucket":                 {bucket, 3 * bucket.scale, 8, 3, 7, 1e6, 3e6},
		"bucket between":         {bucket, 3*bucket.scale - 1, 8, 3, 7, 1e6 - 1, 3e6 - 1},
		"bucket just refilled":   {bucket, 1, 10, 1, 9, 1, 1},
		"empty bucket":           {bucket, 10 * bucket.scale, 1, 10, 0, 1e6, 10e6},
		"lowered burst":          {bucket, 25 * bucket.scale, 1, 10, 0, 16e6, 25e6},
		"burst 0":                {empty, 0, 1, 0, 0, Never, 0},
		"burst 0 and used":       {empty, 2 * empty.scale, 1, 0, 0, Never, 2e6},
		"closed bucket":          {shut, 0, 1, 0, 0, Never, 0},
		"closed and missing":     {shut, 5, 1, 0, 0, Never, 0},
		"longer than can be":     {slow, slow.capacity, 1, 29166, 0, MaxWindow, math.MaxInt64 - testEpoch},
		"beyond 64 bits missing": {bucket, math.MaxInt64, 1, 10, 0, math.MaxInt64 - 9*bucket.scale, math.MaxInt64 - testEpoch},
	} {
		d := Decision{Target: testTarget(1, 1, 1, c.limit), At: minute - 60e6, Cost: c.cost, levels: []int64{c.level}}
		want := View{Limit: c.limit, Used: c.used, Remaining: c.remaining, RetryAfter: c.retry, ResetAt: testEpoch + c.back}
		if got := d.View(0); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if got := d.RetryAfter(); got != c.retry {
			t.Errorf("%s: to be retried after %d, want %d", name, got, c.retry)
		}
		if d.Allowed = true; d.View(0).RetryAfter != 0 || d.RetryAfter() != 0 {
			t.Errorf("%s: an admitted hit is to be retried", name)
		}
	}
}

// TestRetryIsTheLongest of all limits, and Never when it is one's.
func TestRetryIsTheLongest(t *testing.T) {
	second, minute, closed := windowLimit(t, "s", 1, "1s"), windowLimit(t, "m", 2, "1m"), windowLimit(t, "c", 0, "1s")
	target := testTarget(1, 1, 1, second, minute).with("ip=1", closed)
	d := Decision{Target: target, At: testEpoch, Cost: 1, levels: []int64{1, 2, 0}}
	if got := d.RetryAfter(); got != Never {
		t.Errorf("beside a closed one: %d", got)
	}
	d.Target, d.levels = testTarget(1, 1, 1, second, minute), []int64{1, 2}
	if got := d.RetryAfter(); got != 60e6 {
		t.Errorf("of a second and a minute: %d", got)
	}
	if target.NumLimits() != 3 || target.Limit(0) != second || target.Limit(1) != minute || target.Limit(2) != closed {
		t.Error("the limits' order is not that of the counters")
	}
	if target.DenyOutage() {
		t.Error("nothing denies in an outage")
	}
	deny := mustCompile(t, Spec{Name: "d", Algorithm: "fixed_window", Limit: 1, Window: "1s", OnOutage: "deny"})
	if !target.with("ip=2", second, deny).DenyOutage() {
		t.Error("any deny wins")
	}
}

// settled returns a group's hits after a charging statement said run for its rows.
func settleGroup(t *testing.T, costs []int64, run, instant int64, rows ...row) (hits []*hit, again []*hit, refused bool) {
	t.Helper()
	target := testTarget(1, 1, 5, windowLimit(t, "a", 10, "1h"))
	if len(rows) > 1 {
		target = target.with("ip=1", windowLimit(t, "b", 8, "1h"))
	}
	for _, cost := range costs {
		hits = append(hits, &hit{target: target, cost: cost, done: make(chan struct{}, 1), insert: true, book: true})
	}
	again, refused = gather(hits, testEpoch)[0].settle(run, instant, rows)
	return hits, again, refused
}

func TestSettle(t *testing.T) {
	id, other := windowLimit(t, "a", 10, "1h").ID, windowLimit(t, "b", 8, "1h").ID
	at := testEpoch + 5
	rows := []row{{[]int64{id, 7, 1}, at, 12, 5}, {[]int64{other, 5, 1}, at, 30, 5}}
	// 3 and 4 were charged; 9 does not fit what is left; 2 does and is judged again; 4 does not.
	hits, again, refused := settleGroup(t, []int64{3, 4, 9, 2, 4}, 2, at, rows...)
	if len(again) != 1 || again[0] != hits[3] || again[0].insert || again[0].book || !refused {
		t.Fatalf("again %v, refused %v", again, refused)
	}
	for i, want := range []*Decision{
		{Allowed: true, Cost: 3, At: at, Versions: []int64{11, 29}, levels: []int64{3, 1}},
		{Allowed: true, Cost: 4, At: at, Versions: []int64{12, 30}, levels: []int64{7, 5}},
		{Cost: 9, At: at, Versions: []int64{12, 30}, levels: []int64{7, 5}},
		nil,
		{Cost: 4, At: at, Versions: []int64{12, 30}, levels: []int64{7, 5}},
	} {
		if want == nil {
			if len(hits[i].done) != 0 {
				t.Errorf("hit %d is answered", i)
			}
			continue
		}
		if <-hits[i].done; hits[i].result.Err != nil {
			t.Fatal(hits[i].result.Err)
		}
		if err := sameDecision(&hits[i].result.Decision, want); err != nil {
			t.Errorf("hit %d: %v", i, err)
		}
	}
}

func TestSettleHandsBack(t *testing.T) {
	for run, want := range map[int64]struct{ insert, book bool }{
		runMissing: {true, false}, runHourOver: {false, true}, runWindowEnd: {false, false},
	} {
		hits, again, refused := settleGroup(t, []int64{3, 4}, run, testEpoch+99, row{})
		if len(again) != 2 || again[0] != hits[0] || again[1] != hits[1] || refused {
			t.Fatalf("run %d: %d again, refused %v", run, len(again), refused)
		}
		for _, h := range again {
			if h.insert != want.insert || h.book != want.book || h.notBefore != testEpoch+99 || len(h.done) != 0 {
				t.Errorf("run %d: %+v", run, h)
			}
		}
	}
	hits, again, _ := settleGroup(t, []int64{3}, runStale, testEpoch, row{change: 7}, row{change: 9})
	var stale *StaleError
	if <-hits[0].done; len(again) != 0 || !errors.As(hits[0].result.Err, &stale) || stale.Change != 9 {
		t.Errorf("stale: %v", hits[0].result.Err)
	}
	for _, run := range []int64{-5, 3} { // what the statement can never say
		hits, again, _ := settleGroup(t, []int64{3, 3}, run, testEpoch, row{})
		if <-hits[0].done; len(again) != 0 || !errors.Is(hits[0].result.Err, ErrOutcomeUnknown) {
			t.Errorf("run %d: %v", run, hits[0].result.Err)
		}
	}
}
