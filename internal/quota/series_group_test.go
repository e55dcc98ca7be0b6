package quota

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawLimits draws limits of all algorithms and modes, small enough to be reached.
func drawLimits(rt *rapid.T, most int) (limits []*Limit) {
	for i := range rapid.IntRange(0, most).Draw(rt, "limits") {
		s := Spec{
			Name: fmt.Sprint(i), Limit: rapid.Int64Range(1, 30).Draw(rt, "limit"), Window: "1m",
			Algorithm: rapid.SampledFrom([]string{"fixed_window", "sliding_window", "sliding_log", "token_bucket", "allocation"}).Draw(rt, "algorithm"),
			Mode:      rapid.SampledFrom([]string{"hard", "soft", "shadow"}).Draw(rt, "mode"),
		}
		if s.Algorithm == "allocation" {
			s.Window = ""
		}
		l, bad := Compile(s)
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
		target := testTarget(1, 1, 1, drawLimits(rt, 4)...)
		if rapid.Bool().Draw(rt, "per") {
			target = withCounter(target, "ip=1", drawLimits(rt, 3)...)
		}
		rows, want := make([]row, len(target.Counters)), make([]row, len(target.Counters))
		now := testEpoch
		for range rapid.IntRange(1, 4).Draw(rt, "batches") {
			now += rapid.Int64Range(0, 70e6).Draw(rt, "later")
			g := hitGroup{target: target}
			for range rapid.IntRange(1, 12).Draw(rt, "hits") {
				g.hits = append(g.hits, &hit{target: target, cost: rapid.Int64Range(1, 12).Draw(rt, "cost")})
			}
			g.decide(rows, now, nil)
			var cost int64
			some := 0
			for i, h := range g.hits {
				var d Decision
				if d, want = decideOn(target, want, now, h.cost); d.Allowed {
					some, cost = some+1, cost+h.cost
				}
				if got := h.result.Decision; !got.SameAs(&d) {
					rt.Fatalf("hit %d: decided %s, the model says %s", i, got.String(), d.String())
				}
				for v := range target.NumLimits() {
					if got, want := h.result.Decision.View(v), d.View(v); got != want {
						rt.Fatalf("hit %d, limit %d: %+v, want %+v", i, v, got, want)
					}
				}
			}
			if g.admitted != some || g.cost != cost || g.refused != (some < len(g.hits)) {
				rt.Fatalf("%d hits of cost %d admitted, refused %v; want %d of %d", g.admitted, g.cost, g.refused, some, cost)
			}
			for i := range rows {
				if !slices.Equal(rows[i].state, want[i].state) || rows[i].at != want[i].at || rows[i].version != want[i].version {
					rt.Fatalf("row %d: %+v, want %+v", i, rows[i], want[i])
				}
			}
			admitted, refused = admitted+some, refused+len(g.hits)-some
		}
	})
	if admitted == 0 || refused == 0 {
		t.Errorf("%d hits admitted, %d refused", admitted, refused)
	}
}

// The costs of the largest group of all stay far inside 64 bits.
func TestLargestGroup(t *testing.T) {
	g := hitGroup{target: testTarget(1, 1, 1)}
	for range maxBatch {
		g.hits = append(g.hits, &hit{target: g.target, cost: MaxNumber})
	}
	if g.decide(make([]row, 1), testEpoch, nil); g.admitted != maxBatch || g.cost != maxBatch*MaxNumber {
		t.Errorf("%d hits of cost %d", g.admitted, g.cost)
	}
}
