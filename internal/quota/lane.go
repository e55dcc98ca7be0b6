package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"quotad/internal/postgres"
)

// lane gathers the hits of its share of the customers and sends them as batches: one
// session, one batch in flight; while it flies, the next one gathers.
type lane struct {
	engine  *Engine
	session session
	inbox[*hit]
	held int // hits in later; under the inbox's mutex

	// Owned by the lane's goroutine.
	again []*hit // handed back: first in the next batch
	later []*hit // for whose groups a batch had no statement left
	batch []*hit
	gathering
	cautious time.Duration // until then, on the stopwatch, no row is waited for
	pipeline pipeline
	rows     []row
	stale    int // the share of known rows, in 1024ths, that somebody else had written, lately
	these    []*group
	keys     keyColumns // of rows that are read
	asked    params     // of those
	swaps    []swap
	writes   swapValues
	params   params // of those
	swapped  [1]row // as settle and remember want it
}

func newLane(e *Engine) *lane {
	return &lane{engine: e, inbox: newInbox[*hit](), session: session{options: &e.options, statements: e.statements}}
}

// run sends batches until the engine stops and nothing waits any more.
func (l *lane) run(ctx context.Context) {
	defer l.session.close()
	_ = l.session.ready(ctx) // the first hit finds a session, or is told why not
	l.inbox.run(func() bool { return len(l.again)+len(l.later) > 0 }, func() { l.next(ctx) })
}

// take makes the next batch: what was handed back, then up to half of what is left of
// maxBatch from those that had to wait for others on their counters, then the queue, but
// for those whose callers gave up. A group that must go alone does.
func (l *lane) take() []*hit {
	clear(l.batch)
	l.batch = l.batch[:0]
	var rest []*hit
	for _, h := range l.again {
		switch {
		case len(l.batch) > 0 && l.batch[0].alone && h.target.groupKey() != l.batch[0].target.groupKey(),
			len(l.batch) > 0 && h.alone && !l.batch[0].alone:
			rest = append(rest, h)
		case h.take():
			l.batch = append(l.batch, h)
		}
	}
	clear(l.again)
	l.again = append(l.again[:0], rest...)
	if len(l.batch) > 0 && l.batch[0].alone {
		return l.batch
	}
	l.later = l.takeSome(l.later, max(0, maxBatch-len(l.batch))/2)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = len(l.later)
	l.queue = l.takeSome(l.queue, max(0, maxBatch-len(l.batch)))
	return l.batch
}

// takeSome takes up to most hits of a list into the batch and returns the others.
func (l *lane) takeSome(list []*hit, most int) []*hit {
	n := min(len(list), most)
	for _, h := range list[:n] {
		if h.take() {
			l.batch = append(l.batch, h)
		}
	}
	rest := copy(list, list[n:])
	clear(list[rest:])
	return list[:rest]
}

// maxWaves bounds the statements of a batch. Hits of one customer with many values of an
// attribute need one for each value; the other customers of the batch wait for them.
const maxWaves = 16

// bound takes the waves out of a batch that are too many for it, and returns its hits
// without theirs, which wait for the next. They have a list of their own of MaxQueue/2,
// so that the queue stays free for others; what is beyond it is ErrBusy.
func (l *lane) bound(hits []*hit, waves [][]*group) ([]*hit, [][]*group) {
	if len(waves) <= maxWaves {
		return hits, waves
	}
	var late []*hit
	for _, wave := range waves[maxWaves:] {
		late = append(late, hitsOf(wave)...)
	}
	for _, h := range late {
		h.postponed = true
	}
	hits = slices.DeleteFunc(hits, func(h *hit) bool { return h.postponed })
	for _, h := range late {
		h.postponed = false
		switch {
		case len(l.later) >= l.engine.options.MaxQueue/2:
			h.finish(Result{Err: ErrBusy})
		case h.requeue():
			l.later = append(l.later, h)
		}
	}
	l.mu.Lock()
	l.held = len(l.later)
	l.mu.Unlock()
	return hits, waves[:maxWaves]
}

// next decides one batch. The hits are taken from their callers only when there is a
// session and a clock, so that what waits for those can still be given up.
func (l *lane) next(ctx context.Context) {
	now, err := l.session.begin(ctx)
	hits := l.take()
	if err != nil {
		fail(hits, err)
		return
	}
	if len(hits) > 0 {
		l.send(ctx, hits, now)
	}
}

func (l *lane) send(ctx context.Context, hits []*hit, now int64) {
	groups, ok := l.swap(ctx, l.gather(hits, now), now)
	if hits = hitsOf(groups); len(hits) == 0 {
		return
	}
	if !ok {
		l.handBack(hits)
		return
	}
	hits, waves := l.bound(hits, l.engine.waves(groups))
	waves, first := firstApart(waves)
	cautious := l.engine.options.Stopwatch() < l.cautious
	steps := l.pipeline.write(waves, first, cautious, l.engine.commitAt)
	err := l.session.store.run(ctx, steps)
	l.engine.stats.batch(len(hits), len(steps))
	if err != nil {
		l.lost(hits, err)
		return
	}
	for w, wave := range waves {
		l.settle(now, wave, first && w == 0, &l.pipeline.columns[w], l.pipeline.answers[w])
	}
}

// caution is how long a lane waits for no row after it waited for one in vain.
const caution = 5 * time.Second

// lost ends a batch whose pipeline failed. Only what the server itself rolled back is
// sent again; an unknown outcome never is, for it could be charged twice.
func (l *lane) lost(hits []*hit, err error) {
	e := l.engine
	switch {
	case errors.Is(err, errNotSent):
		fail(hits, fmt.Errorf("%w: %w", ErrUnavailable, err))
	case !rolledBack(err):
		l.session.drop()
		e.stats.unknown.Add(int64(len(hits)))
		fail(hits, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err))
	case postgres.Retryable(err):
		// Somebody may be holding a row for long: the others must not wait for it too.
		l.cautious = e.options.Stopwatch() + caution
		e.stats.retried.Add(int64(len(hits)))
		for _, h := range hits {
			h.tries++
		}
		l.handBack(hits)
	case postgres.Outage(err):
		fail(hits, fmt.Errorf("%w: %w", ErrUnavailable, err))
	case hits[0].alone:
		e.options.Log.Error("the database refused a hit's statement", "customer_id", hits[0].target.Counters[0].Key.Customer,
			"meter_id", hits[0].target.Counters[0].Key.Meter, "error", err)
		fail(hits, fmt.Errorf("%w: %w", ErrInternal, err))
	default:
		// One group's fault must not fail the others': each goes alone.
		for _, h := range hits {
			h.alone = true
		}
		l.handBack(hits)
	}
}

// settle hands out the answers of one wave; made says that it made its counters.
func (l *lane) settle(now int64, wave []*group, made bool, cols *columns, answers []answer) {
	first := make([]int32, len(wave)+1)
	for _, s := range cols.slots {
		first[s.group+1]++
	}
	for g := range wave {
		first[g+1] += first[g]
	}
	if len(l.rows) < len(answers) {
		l.rows = make([]row, len(answers))
	}
	runs := make([]*answer, len(wave))
	spared := make([]uint32, len(wave))
	for i, s := range cols.slots {
		l.rows[first[s.group]+s.counter] = answers[i].row
		runs[s.group] = &answers[i]
		if answers[i].spared != 0 {
			spared[s.group] |= uint32(answers[i].spared) << wave[s.group].target.firstLimit(int(s.counter))
		}
	}
	for i, g := range wave {
		rows := l.rows[first[i]:first[i+1]]
		switch {
		case len(rows) > 1: // no swap's
		case runs[i].run > 0:
			g.target.keep(&knownRow{row: rows[0], hour: g.hour, counted: true, place: runs[i].place})
		default: // its change number may be another now
			g.target.forget()
		}
		if made {
			spared[i] = g.sparedAtFirst()
		}
		if run := int(runs[i].run); run >= 0 {
			// Before a caller hears of it: its next hit may come at once.
			l.engine.memory.remember(g.target, rows, now, run < len(g.hits))
		}
		l.handBack(g.settle(runs[i].run, runs[i].instant, spared[i], rows))
		if g.held {
			l.hold(g)
		}
		l.engine.watchAhead(g, now, runs[i].instant)
	}
}

// hold hands a group over that charges a counter with holds.
func (l *lane) hold(g *group) {
	for _, h := range g.hits {
		l.toLedger(h)
	}
}

// maxTries bounds how often a hit is judged anew for another reason than that others of
// its batch were admitted before it: a missing row, an hour or a window that ended, a
// lock that somebody holds. More means a fault, or a row that is held for very long.
const maxTries = 50

// handBack puts hits into the next batch, in front of those that came later, but for
// those whose callers left meanwhile.
func (l *lane) handBack(hits []*hit) {
	for _, h := range hits {
		switch {
		case h.tries > maxTries:
			h.finish(Result{Err: fmt.Errorf("%w: judged %d times without an outcome", ErrBusy, h.tries)})
		case h.requeue():
			l.again = append(l.again, h)
		}
	}
}
