package quota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// hit is one caller's hit on its way through a lane.
type hit struct {
	target *Target
	cost   int64
	done   chan struct{} // receives once, when result is set
	result Result
	state  atomic.Int32

	// What an earlier statement handed it back with.
	tries     int
	notBefore int64 // judge at this instant or later, µs
	insert    bool  // a row of its counters is missing
	book      bool  // the counter's hour is over
}

// Whose a hit is: its caller may take it back only while it is queued.
const (
	hitQueued    = 0
	hitTaken     = 1 // in a batch: it will be charged, or not, whatever its caller does
	hitAbandoned = 2 // the caller gave up first: it leaves no trace
)

func (h *hit) take() bool    { return h.state.CompareAndSwap(hitQueued, hitTaken) }
func (h *hit) abandon() bool { return h.state.CompareAndSwap(hitQueued, hitAbandoned) }

func (h *hit) finish(r Result) {
	h.result = r
	h.done <- struct{}{}
}

func fail(hits []*hit, err error) {
	for _, h := range hits {
		h.finish(Result{Err: err})
	}
}

// lane gathers the hits of its share of the customers and sends them as batches: one
// session, one batch in flight; while it flies, the next one gathers.
type lane struct {
	engine *Engine
	wake   chan struct{} // holds one token when there is something to do

	mu      sync.Mutex
	queue   []*hit
	stopped bool

	// Owned by the lane's goroutine.
	store    *store
	usedAt   time.Duration // when the session was last asked for
	failures int           // to open a session, in a row
	retryAt  time.Duration // not before this, on the engine's stopwatch
	again    []*hit        // handed back: first in the next batch
	batch    []*hit
	pipeline pipeline
}

func newLane(e *Engine) *lane { return &lane{engine: e, wake: make(chan struct{}, 1)} }

// enqueue adds a hit behind those that wait. ErrBusy when the queue is full, ErrStopped
// when the engine stops: then it was not added.
func (l *lane) enqueue(h *hit) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return ErrStopped
	}
	if len(l.queue) >= l.engine.options.MaxQueue {
		return ErrBusy
	}
	if l.queue = append(l.queue, h); len(l.queue) == 1 {
		l.signal()
	}
	return nil
}

func (l *lane) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take makes the next batch: what was handed back, then what waits in the queue.
// done says that nothing is left and nothing more will come.
func (l *lane) take() (batch []*hit, done bool) {
	batch = append(l.batch[:0], l.again...)
	l.again = l.again[:0]
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.queue), max(0, l.engine.options.MaxBatch-len(batch)))
	for _, h := range l.queue[:n] {
		if h.take() {
			batch = append(batch, h)
		}
	}
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	l.batch = batch
	if rest > 0 {
		l.signal()
	}
	return batch, l.stopped && rest == 0 && len(batch) == 0
}

// run sends batches until the engine stops and nothing waits any more.
func (l *lane) run(ctx context.Context) {
	for {
		batch, done := l.take()
		if done {
			break
		}
		if len(batch) == 0 {
			<-l.wake
			continue
		}
		l.send(ctx, batch)
	}
	if l.store != nil {
		l.store.close()
	}
}

// stop lets the lane end once nothing waits in it.
func (l *lane) stop() {
	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
	l.signal()
}

// send decides one batch, within the engine's deadline.
func (l *lane) send(ctx context.Context, hits []*hit) {
	ctx, cancel := context.WithTimeout(ctx, l.engine.options.Deadline)
	defer cancel()
	now, err := l.engine.options.Now(ctx)
	if err == nil {
		err = l.open(ctx)
	}
	if err != nil {
		fail(hits, fmt.Errorf("%w: %w", ErrUnavailable, err))
		return
	}
	waves := l.engine.waves(gather(hits, now))
	steps := l.pipeline.write(waves, l.engine.commitAt)
	err = l.store.run(ctx, steps, l.pipeline.answers)
	l.engine.stats.batch(len(hits), len(steps))
	if err != nil {
		l.lost(hits, err)
		return
	}
	for w, wave := range waves {
		l.settle(now, wave, &l.pipeline.columns[w], l.pipeline.answers[w])
	}
}

var errStillDown = errors.New("the last attempt to connect failed a moment ago")

// open makes sure of a session. One that was idle is asked first: if it is dead by now,
// nothing was sent on it and no outcome is lost. After a failure open says no at once for
// a while, longer each time (up to a second), so that callers do not wait for a dead server.
func (l *lane) open(ctx context.Context) error {
	e := l.engine
	now := e.options.Stopwatch()
	idle := now - l.usedAt
	l.usedAt = now
	if l.store != nil && (idle < time.Second || l.store.conn.Ping(ctx) == nil) && !l.store.conn.IsClosed() {
		return nil
	}
	if l.store != nil {
		l.store.close()
		l.store = nil
	}
	if l.failures > 0 && now < l.retryAt {
		return errStillDown
	}
	s, err := openStore(ctx, e.options.Connect, e.statements)
	if err != nil {
		l.failures++
		l.retryAt = e.options.Stopwatch() + min(time.Second, 50*time.Millisecond<<min(l.failures, 5))
		return err
	}
	l.store, l.failures = s, 0
	return nil
}

// lost ends a batch whose pipeline failed. Only what the server itself rolled back is
// sent again; an unknown outcome never is, for it could be charged twice.
func (l *lane) lost(hits []*hit, err error) {
	switch {
	case !rolledBack(err):
		l.store.close()
		l.store = nil
		l.engine.stats.unknown.Add(int64(len(hits)))
		fail(hits, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err))
	case worthRetrying(err):
		l.engine.stats.retried.Add(int64(len(hits)))
		l.handBack(hits)
	default:
		fail(hits, fmt.Errorf("%w: %w", ErrUnavailable, err))
	}
}

// settle hands out the answers of one wave.
func (l *lane) settle(now int64, wave []*group, cols *columns, answers []answer) {
	rows := make([]row, len(answers)) // kept by the memory of refusals
	first := make([]int32, len(wave)+1)
	for _, s := range cols.slots {
		first[s.group+1]++
	}
	for g := range wave {
		first[g+1] += first[g]
	}
	runs := make([]*answer, len(wave))
	for i, s := range cols.slots {
		rows[first[s.group]+s.counter] = answers[i].row
		runs[s.group] = &answers[i]
	}
	for i, g := range wave {
		own := rows[first[i]:first[i+1]]
		again, refused := g.settle(runs[i].run, runs[i].instant, own)
		l.handBack(again)
		l.engine.watchAhead(g, now, runs[i].instant)
		if refused || runs[i].run > 0 && l.engine.memory.knows(g.target, now) {
			l.engine.memory.remember(g.target, own, now)
		}
	}
}

// maxTries bounds how often a hit is judged anew. A missing row, an hour or a window that
// ended, and others' hits that fit no more each take one; a hundred means a fault.
const maxTries = 100

// handBack puts hits into the next batch, in front of those that came later.
func (l *lane) handBack(hits []*hit) {
	for _, h := range hits {
		if h.tries++; h.tries > maxTries {
			h.finish(Result{Err: fmt.Errorf("%w: judged %d times without an outcome", ErrBusy, maxTries)})
			continue
		}
		l.again = append(l.again, h)
	}
}
