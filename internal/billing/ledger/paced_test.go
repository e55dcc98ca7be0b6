package ledger

import (
	"context"
	"testing"
	"time"

	"quotad/internal/testkit/planstest"
)

// TestPace: a transaction waits by how long it worked, within bounds, and not when others wait for it.
func TestPace(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name        string
		ctx         context.Context
		worked      time.Duration
		owed        time.Duration
		hurried     bool
		least, most time.Duration // of the wait
	}{
		{"too short", t.Context(), 0, 0, false, 0, paceLeast},
		{"a share", t.Context(), 9 * time.Millisecond, 0, false, 18 * time.Millisecond, time.Second},
		{"late the last time", t.Context(), time.Millisecond / 2, -paceLeast, false, 0, paceLeast},
		{"bounded", t.Context(), time.Hour, 0, false, 2 * stretchMost, time.Second},
		{"hurried", t.Context(), time.Hour, 0, true, 0, stretchMost},
		{"out of time", over, time.Hour, 0, false, 0, stretchMost},
	} {
		t.Run(c.name, func(t *testing.T) {
			least := time.Hour // a busy machine is late now and then
			for range 20 {
				p := &pacedTx{owed: c.owed, watch: planstest.Monotonic, rest: 200}
				if c.hurried {
					p.hurry()
				}
				began := p.watch()
				p.since = began - c.worked
				p.wait(c.ctx)
				least = min(least, p.watch()-began)
			}
			if least < c.least || least >= c.most {
				t.Errorf("it waited for %s, want %s to %s", least, c.least, c.most)
			}
		})
	}
	pacedOf(nil).wait(t.Context()) // a transaction without a pace
	pacedOf(nil).hurry()
}

// TestRest: a batch takes its time, whatever the machine, and within bounds.
func TestRest(t *testing.T) {
	for _, c := range []struct {
		worked time.Duration // of a batch of 10, which is to take ten times eachTakes
		want   int64
	}{
		{10 * eachTakes / 2, 100},
		{10 * eachTakes * 2 / 5, 150},
		{10 * eachTakes, restLeast},
		{time.Hour, restLeast},
		{time.Millisecond, restMost},
		{0, restMost},
	} {
		if rest := nextRest(10, c.worked); rest != c.want {
			t.Errorf("behind %s of work a batch waits for %d %% of its work, want %d", c.worked, rest, c.want)
		}
	}
}
