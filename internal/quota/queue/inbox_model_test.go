package queue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestInboxIsLines: whatever comes, is taken and is put back, each sender's items come in their
// order, none is lost, the counts are right, and nobody waits for ever.
func TestInboxIsLines(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b, _ := newInbox()
		want, next := make(map[SenderID][]*thing), make(map[SenderID]int)
		size := func() (n int) {
			for _, items := range want {
				for _, th := range items {
					n += th.Hits()
				}
			}
			return n
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			from := SenderID(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "sender"))
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0, 1:
				var items []*thing
				for range rapid.IntRange(1, 200).Draw(rt, "items") {
					items = append(items, &thing{
						from: from, n: next[from], hits: rapid.IntRange(1, 3).Draw(rt, "hits"),
						rows: rapid.SampledFrom([]int{1, 1, 3, 400}).Draw(rt, "rows"),
					})
					next[from]++
				}
				added, _ := b.Enqueue(500, items...)
				want[from] = append(want[from], items[:added]...)
			default:
				got, alone := batch(b), len(b.waiting.ring) == 0
				if len(got) == 0 && size() > 0 {
					rt.Fatalf("nothing is taken of %d", size())
				}
				back, taken := rapid.Bool().Draw(rt, "back"), make(map[SenderID][]*thing)
				for _, th := range got {
					if want[th.from][0] != th {
						rt.Fatalf("%+v comes instead of %+v", th, want[th.from][0])
					}
					want[th.from] = want[th.from][1:]
					taken[th.from] = append(taken[th.from], th)
				}
				if len(taken) > 1 && !alone && len(got) > SharedRows {
					rt.Fatalf("a batch of %d", len(got))
				}
				if back {
					b.PutBack(got...)
					for from, items := range taken {
						want[from] = append(slices.Clone(items), want[from]...)
					}
				}
			}
			if b.Queued() != size() {
				rt.Fatalf("%d wait, want %d", b.Queued(), size())
			}
			waiting := 0
			for from, items := range want {
				if len(items) > 0 {
					waiting++
				} else if b.waiting.bySender[from] != nil {
					rt.Fatalf("%s waits for nothing", from)
				}
			}
			if len(b.waiting.ring) != waiting || waiting > 1 && len(b.waiting.bySender) != waiting || waiting <= 1 && len(b.waiting.bySender) != 0 {
				rt.Fatalf("%d in the ring and %d by name, %d wait", len(b.waiting.ring), len(b.waiting.bySender), waiting)
			}
		}
		for b.Queued() > 0 {
			if len(batch(b)) == 0 {
				rt.Fatal("nothing is taken")
			}
		}
	})
}
