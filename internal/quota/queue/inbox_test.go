package queue

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"quotad/internal/quota/session"
	"quotad/internal/testkit/quotatest"
)

// thing is an item of a test.
type thing struct {
	from       SenderID
	n          int // which of its sender's it is
	hits, rows int
}

func (th *thing) Sender() SenderID { return th.from }
func (th *thing) Hits() int        { return max(1, th.hits) }
func (th *thing) Rows() int        { return max(1, th.rows) }

// things are n items of a sender.
func things(from SenderID, n, rows int) (all []*thing) {
	for i := range n {
		all = append(all, &thing{from: from, n: i, rows: rows})
	}
	return all
}

func newInbox() (*Inbox[*thing], *atomic.Int64) {
	over := new(atomic.Int64)
	b := NewInbox[*thing](over)
	return &b, over
}

const roomy = 1_000_000

func mustEnqueue(t *testing.T, b *Inbox[*thing], items []*thing) {
	t.Helper()
	if added, err := b.Enqueue(roomy, items...); err != nil || added != len(items) {
		t.Fatal(added, err)
	}
}

// batch takes a batch into which MaxBatch rows fit, and as many items.
func batch(b *Inbox[*thing]) (all []*thing) {
	rows := 0
	b.Take(func(th *thing) bool {
		if len(all) > 0 && rows+th.Rows() > MaxBatch {
			return false
		}
		all, rows = append(all, th), rows+th.Rows()
		return true
	})
	return all
}

// rowsOf is how many rows each sender has in a batch.
func rowsOf(batch []*thing) map[SenderID]int {
	rows := make(map[SenderID]int)
	for _, th := range batch {
		rows[th.from] += th.Rows()
	}
	return rows
}

// However much waits of one sender, another one's item is in the next batch.
func TestAnotherSendersItemIsInTheNextFlight(t *testing.T) {
	b, _ := newInbox()
	for range 20 {
		mustEnqueue(t, b, things("busy", MaxBatch, 1))
	}
	if got := rowsOf(batch(b)); got["busy"] != MaxBatch {
		t.Fatalf("alone it has %v", got)
	}
	for _, from := range []SenderID{"other", "third"} {
		mustEnqueue(t, b, things(from, 1, 1))
		got := batch(b)
		if rows := rowsOf(got); got[0].from != from && got[1].from != from || rows["busy"] != SharedRows-1 || rows[from] != 1 {
			t.Errorf("a batch of %v", rows)
		}
	}
	for range sharedFor { // another may come again
		if got := rowsOf(batch(b)); got["busy"] != SharedRows {
			t.Errorf("alone for now it has %v", got)
		}
	}
	const left = 19*MaxBatch - 2*(SharedRows-1) - sharedFor*SharedRows
	if got := rowsOf(batch(b)); got["busy"] != MaxBatch || b.Queued() != left-MaxBatch {
		t.Errorf("alone again it has %v, and %d wait", got, b.Queued())
	}
}

// All get as many rows of a batch, in turn, whatever their items need.
func TestSendersGetEqualRows(t *testing.T) {
	b, _ := newInbox()
	need := map[SenderID]int{"one": 1, "two": 2, "five": 5, "seventeen": 17}
	for from, rows := range need {
		mustEnqueue(t, b, things(from, 10_000, rows))
	}
	sum := make(map[SenderID]int)
	for range 100 {
		rows, all := rowsOf(batch(b)), 0
		for from, n := range rows {
			sum[from] += n
			all += n
		}
		if all > SharedRows || all <= SharedRows-17 {
			t.Fatalf("a batch of %v", rows)
		}
	}
	for from, rows := range sum {
		if rows < sum["one"]-17 || rows > sum["one"]+17 {
			t.Errorf("%s has %d rows of 100 batches; all have %v", from, rows, sum)
		}
	}
}

// An item that needs more rows than a batch has goes by itself, once its sender's turns pay for
// it. It keeps nobody out of the batches before it.
func TestLargeItemGoesAlone(t *testing.T) {
	b, _ := newInbox()
	mustEnqueue(t, b, things("large", 2, MaxBatch+7))
	mustEnqueue(t, b, things("small", 10_000, 1))
	for range 2 {
		small := 0
		for {
			rows := rowsOf(batch(b))
			if rows["large"] > 0 {
				if rows["large"] != MaxBatch+7 || rows["small"] != 0 {
					t.Errorf("a batch of %v", rows)
				}
				break
			}
			if small += rows["small"]; small > MaxBatch+7+SharedRows {
				t.Fatalf("it waits behind %d", small)
			}
		}
		if small < MaxBatch {
			t.Errorf("it goes behind %d of the other's", small)
		}
	}
	for range sharedFor {
		if rows := rowsOf(batch(b)); rows["small"] != SharedRows {
			t.Errorf("behind it, a batch of %v", rows)
		}
	}
	if rows := rowsOf(batch(b)); rows["small"] != MaxBatch {
		t.Errorf("behind these, a batch of %v", rows)
	}
}

// An item that does not go with the others of a batch begins the next one.
func TestItemWithoutAPlaceIsFirstNext(t *testing.T) {
	b, _ := newInbox()
	for _, from := range []SenderID{"a", "lonely", "c"} {
		mustEnqueue(t, b, things(from, 10_000, 1))
	}
	begins := 0
	for range 10 {
		var first *thing
		b.Take(func(th *thing) bool {
			if first == nil {
				first = th
			}
			return (th.from == "lonely") == (first.from == "lonely")
		})
		if first.from == "lonely" {
			begins++
		}
	}
	if begins != 5 {
		t.Errorf("it begins %d of 10 batches", begins)
	}
}

// A sender may wait while it has less in the queue than there is room: half of the queue when it
// is alone. Others find room then.
func TestShareOfTheQueue(t *testing.T) {
	b, over := newInbox()
	for _, c := range []struct {
		from  SenderID
		added int
		err   error
	}{
		{"a", 50, session.ErrShare},
		{"a", 0, session.ErrShare},
		{"b", 25, session.ErrShare},
		{"c", 13, session.ErrShare},
		{"a", 0, session.ErrShare},
		{"d", 6, session.ErrShare},
		{"e", 3, session.ErrShare},
		{"f", 2, session.ErrShare},
		{"g", 1, session.ErrShare},
		{"h", 0, session.ErrBusy},
	} {
		before := over.Load()
		added, err := b.Enqueue(100, things(c.from, 200, 1)...)
		if added != c.added || err != c.err || !errors.Is(err, session.ErrBusy) { //nolint:errorlint // the very one
			t.Errorf("%s: %d added, %v; want %d, %v", c.from, added, err, c.added, c.err)
		}
		turned := int64(0)
		if c.err == session.ErrShare { //nolint:errorlint // as above
			turned = int64(200 - added)
		}
		if got := over.Load() - before; got != turned {
			t.Errorf("%s: %d counted, want %d", c.from, got, turned)
		}
	}
	// What is large counts by its hits.
	b, _ = newInbox()
	if added, err := b.Enqueue(100, &thing{from: "a", hits: 51}); added != 0 || !errors.Is(err, session.ErrBusy) {
		t.Error(added, err)
	}
	if added, err := b.Enqueue(100, &thing{from: "a", hits: 50}); added != 1 || err != nil || b.Queued() != 50 {
		t.Error(added, err)
	}
	if added, err := b.Enqueue(1, &thing{from: "a"}); added != 0 || !errors.Is(err, session.ErrShare) {
		t.Error(added, err)
	}
	b.Stop()
	if _, err := b.Enqueue(100, &thing{from: "b"}); !errors.Is(err, session.ErrStopped) {
		t.Error(err)
	}
}

// A queue of one has room for one.
func TestSmallestQueue(t *testing.T) {
	b, _ := newInbox()
	if added, err := b.Enqueue(1, things("a", 1, 1)...); added != 1 || err != nil {
		t.Error(added, err)
	}
	if added, err := b.Enqueue(1, things("b", 1, 1)...); added != 0 || !errors.Is(err, session.ErrBusy) || errors.Is(err, session.ErrShare) {
		t.Error(added, err)
	}
}

// Nothing is kept of senders that have nothing waiting, nor of their items.
func TestRingForgets(t *testing.T) {
	b, _ := newInbox()
	for i := range 10_000 {
		mustEnqueue(t, b, things(SenderID(fmt.Sprint(i)), 3, 1))
	}
	if len(b.waiting.ring) != 10_000 || len(b.waiting.bySender) != 10_000 {
		t.Fatalf("%d in the ring, %d by name", len(b.waiting.ring), len(b.waiting.bySender))
	}
	_, _ = b.Enqueue(0, things("refused", 1, 1)...)
	for b.Queued() > 0 {
		batch(b)
	}
	if len(b.waiting.ring) != 0 || len(b.waiting.bySender) != 0 || len(b.waiting.spare) > mostSpare {
		t.Errorf("%d in the ring, %d by name, %d spare", len(b.waiting.ring), len(b.waiting.bySender), len(b.waiting.spare))
	}
	for _, l := range append(b.waiting.spare, b.waiting.ring[:cap(b.waiting.ring)]...) {
		if l == nil {
			continue
		}
		kept := func(th *thing) bool { return th != nil }
		if l.sender != "" || slices.ContainsFunc(l.items[:cap(l.items)], kept) || slices.ContainsFunc(l.back[:cap(l.back)], kept) {
			t.Errorf("kept: %+v", l)
		}
	}
}

// What is late goes after what else its sender has waiting, in its order.
func TestPutLast(t *testing.T) {
	b, _ := newInbox()
	mustEnqueue(t, b, things("a", 6, 1))
	mustEnqueue(t, b, things("b", 4, 1))
	b.PutLast(func(th *thing) bool { return th.n < 3 })
	order := make(map[SenderID][]int)
	for _, th := range batch(b) {
		order[th.from] = append(order[th.from], th.n)
	}
	if !slices.Equal(order["a"], []int{3, 4, 5, 0, 1, 2}) || !slices.Equal(order["b"], []int{3, 0, 1, 2}) {
		t.Error(order)
	}
}

// One sender alone costs no memory and no look-up: as many hits as a lane has, in and out.
func TestOneSenderAllocatesNothing(t *testing.T) {
	b := NewInbox[*Hit](new(atomic.Int64))
	target := quotatest.Target(1, 1, 1)
	hits := make([]*Hit, MaxBatch)
	for i := range hits {
		hits[i] = &Hit{From: "key_1", Target: target, Cost: 1}
	}
	taken := 0
	round := func() {
		if _, err := b.Enqueue(roomy, hits...); err != nil {
			t.Fatal(err)
		}
		b.Take(func(*Hit) bool { taken++; return true })
	}
	if allocations := testing.AllocsPerRun(100, round); allocations > 0 || taken != 101*MaxBatch {
		t.Errorf("%v allocations for %d hits", allocations, taken/101)
	}
	b.Take(func(*Hit) bool { t.Error("something is left"); return true })
	if len(b.waiting.bySender) > 0 {
		t.Error("one sender was written into the map")
	}
}
