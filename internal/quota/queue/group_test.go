package queue

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/quota/model"
	"quotad/internal/testkit/quotatest"
)

// drawLimits draws limits of all algorithms and modes, small enough to be reached.
func drawLimits(rt *rapid.T, most int) (limits []*model.Limit) {
	for i := range rapid.IntRange(0, most).Draw(rt, "limits") {
		s := model.Spec{
			Name: fmt.Sprint(i), Limit: rapid.Int64Range(1, 30).Draw(rt, "limit"), Window: "1m",
			Algorithm: rapid.SampledFrom([]string{"fixed_window", "sliding_window", "sliding_log", "token_bucket", "allocation"}).Draw(rt, "algorithm"),
			Mode:      rapid.SampledFrom([]string{"hard", "soft", "shadow"}).Draw(rt, "mode"),
		}
		if s.Algorithm == "allocation" {
			s.Window = ""
		}
		l, bad := model.Compile(s)
		if bad != nil {
			rt.Fatal(bad)
		}
		limits = append(limits, l)
	}
	return limits
}

// TestGroupsAreDecidedOneByOne: what a group's hits are told, and what they leave in the rows,
// is what each of them alone would be told and leave, one after the other.
func TestGroupsAreDecidedOneByOne(t *testing.T) {
	admitted, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		target := quotatest.Target(1, 1, 1, drawLimits(rt, 4)...)
		if rapid.Bool().Draw(rt, "per") {
			target = quotatest.WithCounter(target, "ip=1", drawLimits(rt, 3)...)
		}
		rows, want := make([]model.Row, len(target.Counters)), make([]model.Row, len(target.Counters))
		now := quotatest.Epoch
		for range rapid.IntRange(1, 4).Draw(rt, "batches") {
			now += rapid.Int64Range(0, 70e6).Draw(rt, "later")
			g := Group{Target: target}
			for range rapid.IntRange(1, 12).Draw(rt, "hits") {
				g.Hits = append(g.Hits, &Hit{Target: target, Cost: rapid.Int64Range(1, 12).Draw(rt, "cost")})
			}
			g.Decide(rows, now, nil)
			var cost int64
			some := 0
			for i, h := range g.Hits {
				var d model.Decision
				if d, want = quotatest.Decide(target, want, now, h.Cost); d.Allowed {
					some, cost = some+1, cost+h.Cost
				}
				if got := h.Result.Decision; !got.SameAs(&d) {
					rt.Fatalf("hit %d: decided %s, the model says %s", i, got.String(), d.String())
				}
				for v := range target.NumLimits() {
					if got, want := h.Result.Decision.View(v), d.View(v); got != want {
						rt.Fatalf("hit %d, limit %d: %+v, want %+v", i, v, got, want)
					}
				}
			}
			if g.Admitted != some || g.Cost != cost || g.Refused != (some < len(g.Hits)) {
				rt.Fatalf("%d hits of cost %d admitted, refused %v; want %d of %d", g.Admitted, g.Cost, g.Refused, some, cost)
			}
			for i := range rows {
				if !slices.Equal(rows[i].State, want[i].State) || rows[i].At != want[i].At || rows[i].Version != want[i].Version {
					rt.Fatalf("row %d: %+v, want %+v", i, rows[i], want[i])
				}
			}
			admitted, refused = admitted+some, refused+len(g.Hits)-some
		}
	})
	if admitted == 0 || refused == 0 {
		t.Errorf("%d hits admitted, %d refused", admitted, refused)
	}
}

// The costs of the largest group of all stay far inside 64 bits.
func TestLargestGroup(t *testing.T) {
	g := Group{Target: quotatest.Target(1, 1, 1)}
	for range MaxBatch {
		g.Hits = append(g.Hits, &Hit{Target: g.Target, Cost: model.MaxNumber})
	}
	if g.Decide(make([]model.Row, 1), quotatest.Epoch, nil); g.Admitted != MaxBatch || g.Cost != MaxBatch*model.MaxNumber {
		t.Errorf("%d hits of cost %d", g.Admitted, g.Cost)
	}
}
