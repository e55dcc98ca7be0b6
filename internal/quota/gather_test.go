package quota

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawKey(rt *rapid.T) CounterKey {
	return CounterKey{
		Customer:  rapid.Int64Range(1, 4).Draw(rt, "customer"),
		Meter:     rapid.Int32Range(1, 2).Draw(rt, "meter"),
		Attribute: rapid.SampledFrom([]string{"", "", "ip=1", "ip=2", "ip=10", "IP=1", "ip=ä", "ip=_", "ip=a b"}).Draw(rt, "attribute"),
	}
}

// TestGather: a group a target, in order of arrival, and so its hits.
func TestGather(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var targets, order []*Target
		for range rapid.IntRange(1, 6).Draw(rt, "targets") {
			target := testTarget(1, 1, 1)
			target.Counters[0].Key = drawKey(rt)
			targets = append(targets, target)
		}
		var hits []*hit
		want := make(map[*Target][]*hit)
		for range rapid.IntRange(1, 20).Draw(rt, "hits") {
			h := &hit{target: rapid.SampledFrom(targets).Draw(rt, "target"), cost: 1}
			if want[h.target] == nil {
				order = append(order, h.target)
			}
			hits, want[h.target] = append(hits, h), append(want[h.target], h)
		}
		groups := new(gathering).gather(hits, 100)
		if len(groups) != len(order) {
			rt.Fatalf("%d groups of %d targets", len(groups), len(order))
		}
		for i, g := range groups {
			if g.target != order[i] || g.now != 100 || !slices.Equal(g.hits, want[g.target]) {
				rt.Fatalf("group %d: %+v", i, g)
			}
		}
	})
}

// What is used again for the next batch keeps nothing of the last one alive.
func TestGatheringLetsGo(t *testing.T) {
	var a gathering
	var hits []*hit
	for i := range 30 {
		hits = append(hits, &hit{target: testTarget(int64(i%3), 1, 1), cost: 1})
	}
	if n := len(a.gather(hits, 1)); n != len(hits) { // each has a target of its own
		t.Fatalf("%d groups", n)
	}
	a.gather(hits[:1], 1)
	for i, g := range a.spare[1:] {
		if g.target != nil || len(g.hits) > 0 || slices.ContainsFunc(g.hits[:cap(g.hits)], func(h *hit) bool { return h != nil }) {
			t.Errorf("group %d keeps %+v", i+1, g)
		}
	}
}
