package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres"
)

// lane gathers the hits of its share of the customers and decides them by swaps: one session,
// one batch in flight; while it flies, the next one gathers. What no swap can do it hands over
// to its ledger.
type lane struct {
	node    *node
	ledger  *ledger
	session session
	inbox[*hit]

	// Owned by the lane's goroutine.
	now   int64  // of the batch, µs
	again []*hit // whose rows were read: first in the next batch
	batch []*hit
	gathering
	these   []*group // that the lane decides
	stale   int      // the share of known rows, in 1024ths, that somebody else had written, lately
	swaps   writing  // rows to be written
	makes   writing  // rows to be made
	reading []*group // rows to be read
	keys    keyColumns
	asked   params // of those
	row     [1]row // as the memory of refusals wants it

	// A part that tests break, to see that the breakage is noticed.
	apart func(*writing) []*group
}

func newLane(n *node, to *ledger) *lane {
	return &lane{
		node: n, ledger: to, inbox: newInbox[*hit](), apart: apart,
		session: session{options: &n.sessionOptions, statements: laneStatements(), beside: &to.session},
	}
}

// run sends batches until the engine stops and nothing waits any more.
func (l *lane) run(ctx context.Context) {
	defer l.session.close()
	_ = l.session.ready(ctx) // the first hit finds a session, or is told why not
	l.inbox.run(func() bool { return len(l.again) > 0 }, func() { l.next(ctx) })
}

// take makes the next batch: those whose rows were read, then the queue, but for those whose
// callers gave up.
func (l *lane) take() []*hit {
	clear(l.batch)
	l.batch = l.batch[:0]
	l.again = l.takeSome(l.again)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = l.takeSome(l.queue)
	return l.batch
}

// takeSome takes hits of a list into the batch until it is full, and returns the others.
func (l *lane) takeSome(list []*hit) []*hit {
	n := min(len(list), maxBatch-len(l.batch))
	for _, h := range list[:n] {
		if h.take() {
			l.batch = append(l.batch, h)
		}
	}
	rest := copy(list, list[n:])
	clear(list[rest:])
	return list[:rest]
}

// next decides one batch. The hits are taken from their callers only when there is a
// session and a clock, so that what waits for those can still be given up.
func (l *lane) next(ctx context.Context) {
	now, err := l.session.begin(ctx)
	hits := l.take()
	if err != nil {
		for _, h := range hits {
			h.finish(Result{Err: err})
		}
		return
	}
	l.now = now
	l.swaps.reset()
	l.makes.reset()
	l.reading = l.reading[:0]
	l.plan(l.recall(l.gather(hits, now)))
	if len(l.reading) > len(l.swaps.groups)+len(l.makes.groups) { // else a few do not keep the others waiting
		if err := l.send(ctx, 0, l.recallStep()); err != nil {
			l.lost(err, false)
			return
		}
		reading := l.reading
		l.reading = nil
		l.plan(reading)
		l.reading = reading[:0]
	}
	l.swap(ctx)
}

// recall finds what is known of the groups' rows, and hands over what the ledger decides:
// hits on several counters, which a swap could not charge all or none, and those that follow
// others there.
func (l *lane) recall(groups []*group) []*group {
	watch, cautious := l.node.Stopwatch(), l.ledger.cautious()
	l.these = l.these[:0]
	for _, g := range groups {
		swap := false
		if len(g.target.Counters) == 1 && !cautious {
			g.knows, swap = g.target.Recall(&g.known, watch)
		}
		if swap {
			l.these = append(l.these, g)
		} else {
			l.handOver(g)
		}
	}
	return l.these
}

// mostStale is the share, in 1024ths, of known rows that turned out to have been written by
// somebody else, from which on rows are read before each swap: that costs half of what a swap
// in vain does.
const mostStale = 256

// plan has the groups decided as far as the Go model can, and sorts them by what is to be done.
func (l *lane) plan(groups []*group) {
	for _, g := range groups {
		w := byReading
		if g.read || l.stale < mostStale {
			w = g.plan()
		}
		switch w {
		case bySwap:
			l.swaps.groups = append(l.swaps.groups, g)
		case byMaking:
			l.makes.groups = append(l.makes.groups, g)
		case byReading:
			l.reading = append(l.reading, g)
		default:
			l.settleUnwritten(g, w)
		}
	}
}

// swap writes, makes and reads the rows of the batch's groups, and hands out what came of it.
func (l *lane) swap(ctx context.Context) {
	for _, w := range []*writing{&l.swaps, &l.makes} {
		for _, g := range l.apart(w) {
			l.handOver(g)
		}
	}
	if err := l.sendAll(ctx); err != nil {
		l.lost(err, true)
		return
	}
	l.countLost()
	for _, w := range []*writing{&l.swaps, &l.makes} {
		for _, g := range w.groups {
			l.settle(g)
		}
	}
	for _, g := range l.reading {
		l.settleReading(g)
	}
}

// sendAll writes, makes and reads rows in one round trip. Rows are made before any lock.
func (l *lane) sendAll(ctx context.Context) error {
	var steps []step
	hits := 0
	if len(l.makes.groups) > 0 {
		steps = append(steps, l.makes.step(makeRows))
		hits += l.makes.hits()
	}
	if len(l.reading) > 0 {
		steps = append(steps, l.recallStep())
	}
	if len(l.swaps.groups) > 0 {
		steps = append(steps, l.swaps.step(swapRows))
		hits += l.swaps.hits()
	}
	return l.send(ctx, hits, steps...)
}

// send makes one round trip and transaction that is to charge so many hits.
func (l *lane) send(ctx context.Context, hits int, steps ...step) error {
	if len(steps) == 0 {
		return nil
	}
	l.node.totals.batch(hits, len(steps))
	return l.session.store.run(ctx, steps)
}

// recallStep reads rows.
func (l *lane) recallStep() step {
	slices.SortFunc(l.reading, func(a, b *group) int { return compareKeys(a.own(), b.own()) })
	l.keys.reset()
	for _, g := range l.reading {
		l.keys.add(g.own())
	}
	l.asked.reset()
	l.keys.encode(&l.asked)
	return step{name: recallRows, params: l.asked.values(), read: l.readRows}
}

// readRows reads what recallSQL returns. A row that is not there is known to be missing.
func (l *lane) readRows(r *pgconn.ResultReader) error {
	there := make([]bool, len(l.reading))
	same, of := 0, 0
	err := eachRow(r, len(l.reading), func(n int, cols [][]byte) error {
		g := l.reading[n]
		version, at := g.known.version, g.known.at
		there[n] = true
		spoiled := readKnown(&g.known, cols) != nil // the fault of its own group, of which the ledger says so
		if g.knows {
			of++
			if g.known.version == version && g.known.at == at {
				same++
			}
		}
		g.knows = !spoiled
		return nil
	})
	for i, g := range l.reading {
		g.read = true
		if !there[i] {
			g.known, g.knows = knownRow{missing: true}, true
		}
	}
	l.tell(of-same, of)
	return err
}

// tell notes how many of some rows that were known had been written by somebody else.
func (l *lane) tell(stale, of int) {
	if of > 0 {
		l.stale += (1024*stale/of - l.stale) / 8
	}
}

// countLost counts the swaps that were in vain.
func (l *lane) countLost() {
	lost, stale, remembered := 0, 0, 0
	for _, g := range l.swaps.groups {
		if !g.done {
			lost++
		}
		if !g.read {
			remembered++
			if !g.done {
				stale++
			}
		}
	}
	l.tell(stale, remembered)
	l.node.totals.swapped.Add(int64(len(l.swaps.groups) - lost))
	l.node.totals.swapsLost.Add(int64(lost))
}

// settle hands out what became of a group whose row was to be written.
func (l *lane) settle(g *group) {
	if !g.done {
		g.target.Contended(l.node.Stopwatch())
		l.handOver(g)
		return
	}
	g.target.Keep(&g.after)
	l.tellMemory(g, g.after.row)
	l.node.watchAhead(g.target, len(g.hits), g.now, g.after.at)
	g.finish(nil)
}

// settleReading settles a group whose row was read beside the swaps of others. What is to be
// written goes into the next batch, which knows the row.
func (l *lane) settleReading(g *group) {
	w := g.plan()
	if w != bySwap && w != byMaking {
		l.settleUnwritten(g, w)
		return
	}
	g.target.Keep(&g.known)
	for _, h := range g.hits {
		if h.requeue() {
			l.again = append(l.again, h)
		}
	}
}

// settleUnwritten settles a group for which there is nothing to be written here.
func (l *lane) settleUnwritten(g *group, w way) {
	switch w {
	case asItStands:
		g.target.Keep(&g.known)
		l.tellMemory(g, g.known.row)
		g.finish(nil)
	case asStale:
		g.finish(&StaleError{Change: g.known.change})
	default:
		l.handOver(g)
	}
}

// tellMemory tells the memory of refusals what the group's row is, before a caller hears of
// it: its next hit may come at once.
func (l *lane) tellMemory(g *group, r row) {
	l.row[0] = r
	l.node.memory.remember(g.target, l.row[:], l.now, g.refused)
}

// handOver gives a group's hits to the ledger.
func (l *lane) handOver(g *group) {
	hits := make([]*hit, 0, len(g.hits))
	for _, h := range g.hits {
		if h.requeue() {
			hits = append(hits, h)
		}
	}
	if len(hits) == 0 {
		return
	}
	o := newRun(g.target, hits)
	if err := l.ledger.enqueue(o); err != nil && o.take() {
		o.finish(err)
	}
}

// lost ends a batch whose round trip failed. What the server itself rolled back the ledger
// does again: it waits for no row that somebody holds for long, and keeps a statement that
// the server refuses from failing other customers' hits. An unknown outcome is never tried
// again, for it could be charged twice; wrote says that there was anything to be charged.
func (l *lane) lost(err error, wrote bool) {
	unwritten, written := fmt.Errorf("%w: %w", ErrUnavailable, err), fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	if !wrote {
		written = unwritten
	}
	again := false
	switch {
	case errors.Is(err, errNotSent):
		written = unwritten
	case !rolledBack(err):
		l.session.drop()
	case hopeless(err):
		unwritten = l.session.refuse(err)
		written = unwritten
	default:
		again = true
		if postgres.Retryable(err) {
			l.ledger.beCautious()
		}
	}
	end := func(groups []*group, err error) {
		for _, g := range groups {
			if again {
				l.node.totals.retried.Add(int64(len(g.hits)))
				l.handOver(g)
				continue
			}
			if errors.Is(err, ErrOutcomeUnknown) {
				l.node.totals.unknown.Add(int64(len(g.hits)))
			}
			g.finish(err)
		}
	}
	end(l.swaps.groups, written)
	end(l.makes.groups, written)
	end(l.reading, unwritten)
}
