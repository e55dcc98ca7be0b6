package locked

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// TestAnotherKeysIDIsInTheNextTransaction: one key has 20 batches of 1,000 hits with ids waiting,
// and an atomic batch of 1,000 customers in front of them.
func TestAnotherKeysIDIsInTheNextTransaction(t *testing.T) {
	db, ctx := quotatest.NewDB(t), testkit.Context(t)
	w := handWorker(t, db, quotatest.NewClock(quotatest.Epoch))
	w.node.MaxQueue = 1_000_000
	submit := func(from queue.SenderID, customer, n int) Once {
		target := quotatest.Target(int64(customer), 1, 1)
		return w.Submit(from, &model.Hit{Target: target, Cost: 1, ID: model.NewID("hit", fmt.Sprint(from, customer, n))})
	}
	if first := submit("busy", 3000, 0); first.Operation == nil {
		t.Fatal("nothing waits")
	}
	var many []model.Hit
	for i := range 1000 {
		many = append(many, model.Hit{Target: quotatest.Target(int64(i+1), 1, 1), Cost: 1})
	}
	var outcome error
	atomic := w.together(many, &outcome)
	atomic.from = "busy"
	if err := w.Enqueue(atomic); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		for i := range 1000 {
			submit("busy", i+1, n)
		}
	}
	for round := range 3 {
		other := submit("other", 2000, round)
		waiting := w.Queued()
		w.Next(ctx)
		if round == 0 { // its row was not there
			w.Next(ctx)
		}
		if len(other.Done) == 0 {
			t.Fatalf("round %d: another key's hit still waits", round)
		}
		if n := waiting - w.Queued(); n > 2*queue.SharedRows {
			t.Errorf("round %d: it came with %d others", round, n)
		}
	}
}

// TestTimeOfACustomer: a customer whose operations take 20 ms of a transaction has the others in
// the next one, after what else waits, and in their order.
func TestTimeOfACustomer(t *testing.T) {
	db, ctx := quotatest.NewDB(t), testkit.Context(t)
	w := handWorker(t, db, quotatest.NewClock(quotatest.Epoch))
	watch := time.Duration(0)
	w.node.Stopwatch = func() time.Duration { return watch }
	var done []string
	operation := func(name string, took time.Duration, customers ...int64) *Operation {
		o := w.newOperation("key", quotatest.Target(customers[0], 1, 1), model.ID{})
		for _, customer := range customers[1:] {
			o.lock(quotatest.Target(customer, 1, 1).Keys()...)
		}
		o.target, o.failed = nil, func(err error) { t.Error(err) }
		o.do = func(*transaction) error {
			done = append(done, name)
			watch += took
			return nil
		}
		return o
	}
	enqueue := func(o *Operation) {
		if err := w.Enqueue(o); err != nil {
			t.Fatal(err)
		}
	}
	const slow, quick, both, third = 1, 2, 3, 4
	for i := range 5 {
		enqueue(operation(fmt.Sprint("slow ", i), 8*time.Millisecond, slow))
	}
	enqueue(operation("slow and both", time.Millisecond, both, slow)) // it keeps its place after the slow ones
	enqueue(operation("both", time.Millisecond, both))                // and so does this, after it
	late := operation("late", time.Millisecond, third)
	beside := operation("quick", time.Millisecond, quick)
	do := beside.do
	beside.do = func(tx *transaction) error {
		enqueue(operation("slow 5", 0, slow)) // comes during the transaction, as does the late one
		enqueue(late)
		return do(tx)
	}
	enqueue(beside)
	for _, want := range [][]string{
		{"slow 0", "slow 1", "slow 2", "quick"},
		{"late", "slow 3", "slow 4", "slow and both", "both", "slow 5"},
	} {
		if done = nil; w.Queued() == 0 {
			t.Fatal("nothing waits")
		}
		w.Next(ctx)
		if !slices.Equal(done, want) {
			t.Errorf("a transaction of %q, want %q", done, want)
		}
	}
	if w.Queued() > 0 {
		t.Errorf("%d still wait", w.Queued())
	}
}
