package lane

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/testkit/quotatest"
)

func drawKey(rt *rapid.T) model.CounterKey {
	return model.CounterKey{
		Customer: rapid.Int64Range(1, 4).Draw(rt, "customer"), Meter: rapid.Int32Range(1, 2).Draw(rt, "meter"),
		Attribute: rapid.SampledFrom([]string{"", "", "ip=1", "ip=2", "ip=10", "IP=1", "ip=ä", "ip=_", "ip=a b"}).Draw(rt, "attribute"),
	}
}

// TestGather: a group a target, in order of arrival, and so its hits.
func TestGather(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var targets, order []*model.Target
		for range rapid.IntRange(1, 6).Draw(rt, "targets") {
			target := quotatest.Target(1, 1, 1)
			target.Counters[0].Key = drawKey(rt)
			targets = append(targets, target)
		}
		var hits []*queue.Hit
		want := make(map[*model.Target][]*queue.Hit)
		for range rapid.IntRange(1, 20).Draw(rt, "hits") {
			h := &queue.Hit{Target: rapid.SampledFrom(targets).Draw(rt, "target"), Cost: 1}
			if want[h.Target] == nil {
				order = append(order, h.Target)
			}
			hits, want[h.Target] = append(hits, h), append(want[h.Target], h)
		}
		groups := new(gathering).gather(hits, 100)
		if len(groups) != len(order) {
			rt.Fatalf("%d groups of %d targets", len(groups), len(order))
		}
		for i, g := range groups {
			if g.Target != order[i] || g.now != 100 || !slices.Equal(g.Hits, want[g.Target]) {
				rt.Fatalf("group %d: %+v", i, g)
			}
		}
	})
}

// What is used again for the next batch keeps nothing of the last one alive.
func TestGatheringLetsGo(t *testing.T) {
	var a gathering
	var hits []*queue.Hit
	for i := range 30 {
		hits = append(hits, &queue.Hit{Target: quotatest.Target(int64(i%3), 1, 1), Cost: 1})
	}
	if n := len(a.gather(hits, 1)); n != len(hits) { // each has a target of its own
		t.Fatalf("%d groups", n)
	}
	a.gather(hits[:1], 1)
	for i, g := range a.spare[1:] {
		if g.Target != nil || len(g.Hits) > 0 || slices.ContainsFunc(g.Hits[:cap(g.Hits)], func(h *queue.Hit) bool { return h != nil }) {
			t.Errorf("group %d keeps %+v", i+1, g)
		}
	}
}
