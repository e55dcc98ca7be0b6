package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"quotad/internal/testkit"
)

// verdict is what an answer means for its operation.
type verdict int

const (
	again   verdict = iota // nothing definitive: send it again
	refused                // all of it, or a part, was not done
	done
)

// op is one thing that a client wants done once.
type op struct {
	request
	// read says what a definitive answer means, or that there must be no such answer.
	read func(a *answer) (verdict, error)
	// book adds a definitive answer to the ledger. It is called once.
	book func(c *caller, a *answer, v verdict)

	mu    sync.Mutex
	first string // the gist of the first answer that said done
	fresh int    // answers that said done and not replayed
}

// tally counts what happened on the way to the answers.
type tally struct{ sent, lost, undone, replayed, refused, unsettled, together atomic.Int64 }

// caller sends operations until they are answered, whatever it takes.
type caller struct {
	run    *run
	random *rand.Rand
}

// perform does an operation, at times on several nodes at once, and books it. A refusal
// after a lost answer is definitive only when nothing is under way any more: what was
// lost may be admitted still. Those are settled in the end.
func (c *caller) perform(o *op) error {
	times := 1
	if c.run.duplicates > 0 && c.random.Float64() < c.run.duplicates {
		times = min(2+c.random.IntN(2), len(c.run.cluster.nodes)+1)
		c.run.tally.together.Add(1)
	}
	a, v, doubt, err := c.deliverAll(o, times)
	switch {
	case err != nil:
		return fmt.Errorf("%s %s %s: %w", o.method, o.path, o.body, err)
	case v == refused && doubt && c.run.ids:
		c.run.postpone(o)
		return nil
	case v == refused:
		c.run.tally.refused.Add(1)
	}
	o.book(c, a, v)
	return nil
}

// deliverAll delivers an operation so many times at once and returns one answer for all:
// one that says done, if any does.
func (c *caller) deliverAll(o *op, times int) (best *answer, v verdict, doubt bool, err error) {
	type outcome struct {
		answer  *answer
		verdict verdict
		doubt   bool
		err     error
	}
	outcomes := make([]outcome, times)
	first := c.random.IntN(len(c.run.cluster.nodes))
	deliver := func(i int, random *rand.Rand) {
		x := &outcomes[i]
		x.answer, x.verdict, x.doubt, x.err = c.run.deliver(o, first+i, random)
	}
	var others sync.WaitGroup
	for i := range times - 1 {
		random := rand.New(rand.NewPCG(c.random.Uint64(), uint64(i)))
		others.Go(func() { deliver(i+1, random) })
	}
	deliver(0, c.random)
	others.Wait()
	for _, x := range outcomes {
		if x.verdict > v {
			best, v = x.answer, x.verdict
		}
		// Of a batch each may have been refused another part.
		doubt = doubt || x.doubt || x.verdict == refused && len(x.answer.Results) > 0 && times > 1
		err = errors.Join(err, x.err)
	}
	return best, v, doubt, err
}

// deliver sends an operation to a node, and then to random ones until an answer is
// definitive. doubt: what was sent before may have been done, or may be done still.
func (r *run) deliver(o *op, node int, random *rand.Rand) (a *answer, v verdict, doubt bool, err error) {
	for giveUp := time.Now().Add(testkit.Patience); time.Now().Before(giveUp); node = random.IntN(len(r.cluster.nodes)) {
		r.tally.sent.Add(1)
		a, err := r.cluster.send(o.request, node%len(r.cluster.nodes))
		switch {
		case errors.Is(err, errNotJSON):
			return nil, again, doubt, err
		case err != nil:
			doubt = doubt || !neverSent(err)
			r.tally.lost.Add(1)
			pause(random, 10*time.Millisecond)
			continue
		}
		v, lost, err := o.judge(&a)
		doubt = doubt || lost
		if err == nil && v == again {
			r.tally.undone.Add(1)
			pause(random, 100*time.Millisecond)
			continue
		}
		if err == nil && v == done {
			err = o.see(r, &a)
		}
		if err != nil {
			err = fmt.Errorf("answered %d: %w\n%s", a.status, err, a.raw)
		}
		return &a, v, doubt, err
	}
	return nil, again, doubt, errors.New("not answered")
}

func pause(random *rand.Rand, most time.Duration) {
	time.Sleep(time.Duration(random.Int64N(int64(most))))
}

// judge says what an answer means, and whether it says that nobody knows what was done.
func (o *op) judge(a *answer) (v verdict, lost bool, err error) {
	all, doubt := a.unanswered()
	for i := range a.Results {
		some, lost := a.Results[i].unanswered()
		all, doubt = all || some, doubt || lost
	}
	if all {
		return again, doubt, nil
	}
	v, err = o.read(a)
	return v, doubt, err
}

// see holds an answer that says done against those before it: they tell the same, and only
// one of them is not a replay.
func (o *op) see(r *run, a *answer) error {
	if !r.ids {
		return nil
	}
	parts := a.Results
	if len(parts) == 0 {
		parts = []content{a.content}
	}
	gist, fresh, replayed := "", false, false
	for i := range parts {
		gist += parts[i].gist() + "; "
		if parts[i].Replayed != nil {
			fresh, replayed = fresh || !*parts[i].Replayed, replayed || *parts[i].Replayed
		}
	}
	if replayed {
		r.tally.replayed.Add(1)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.first == "" {
		o.first = gist
	}
	if o.first != gist {
		return fmt.Errorf("an answer before it was: %s", o.first)
	}
	if fresh {
		o.fresh++
	}
	// Of a batch some hits may have been done by one sending and some by another.
	if o.fresh > 1 && len(parts) == 1 {
		return fmt.Errorf("the %d. answer that is no replay", o.fresh)
	}
	return nil
}
