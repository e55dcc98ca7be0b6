package lane

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// Lane decides the hits of its share of the customers by swaps. It has one session and one batch in flight, while
// it collects the next batch. Hits that no swap can charge are handed over to the lane's worker.
type Lane struct {
	node    *queue.Node
	Worker  *locked.Worker
	Session session.Session
	queue.Inbox[*queue.Hit]

	// The following fields belong to the lane's goroutine.
	now   int64        // the instant of the batch, µs
	again []*queue.Hit // hits to be put back, because their rows were read
	batch []*queue.Hit
	gathering
	these   []*Group // the groups that the lane decides
	stale   int      // the recent share of remembered rows that another writer had changed, in 1024ths
	swaps   Writing  // rows to be written
	makes   Writing  // rows to be created
	reading []*Group // rows to be read
	keys    session.Columns
	asked   session.Params // the keys as parameters
	row     [1]model.Row   // a row in the form that the memory of refusals expects
}

// New returns a lane of a node that hands over hits to a worker. Run runs the lane.
func New(n *queue.Node, to *locked.Worker) *Lane {
	return &Lane{
		node: n, Worker: to, Inbox: queue.NewInbox[*queue.Hit](&n.Totals.Over),
		Session: session.Session{Options: &n.Options, Statements: Statements(), Beside: &to.Session},
	}
}

// Run sends batches until the engine stops and nothing waits any more.
func (l *Lane) Run(ctx context.Context) {
	defer l.Session.Close()
	_ = l.Session.Ready(ctx) // the first hit finds a session or a reason why there is none
	l.Session.End()
	l.Inbox.Run(func() { l.Next(ctx) })
}

// Enqueue adds hits of one sender after the sender's waiting hits, unless the database is too slow; see
// queue.Inbox and session.Circuit.
func (l *Lane) Enqueue(most int, hits ...*queue.Hit) (added int, err error) {
	if err = l.node.Circuit.Err(); err != nil {
		return 0, err
	}
	return l.Inbox.Enqueue(most, hits...)
}

// take makes the next batch of the waiting hits, except for hits whose callers gave up.
func (l *Lane) take() []*queue.Hit {
	clear(l.batch)
	l.batch = l.batch[:0]
	l.Take(func(h *queue.Hit) bool {
		if len(l.batch) == queue.MaxBatch {
			return false
		}
		if h.Take() {
			l.batch = append(l.batch, h)
		}
		return true
	})
	return l.batch
}

// Next decides one batch. It takes hits from their callers only when a session and a clock are available, so that
// callers can still give up until then.
func (l *Lane) Next(ctx context.Context) {
	defer l.Session.End()
	now, err := l.Session.Begin(ctx)
	hits := l.take()
	if err != nil {
		for _, h := range hits {
			h.Finish(queue.Result{Err: err})
		}
		return
	}
	l.now = now
	l.swaps.reset()
	l.makes.reset()
	l.reading = l.reading[:0]
	l.plan(l.recall(l.gather(hits, now)))
	if len(l.reading) > len(l.swaps.Groups)+len(l.makes.Groups) { // otherwise these few groups do not delay the others
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

// recall retrieves the remembered rows of the groups, and returns the groups that the lane decides. It hands over
// to the worker hits on several counters, which a swap could charge in part, and hits on a counter that the worker
// has. For targets of another history of the database, it returns a StaleError, so that the targets are resolved
// again.
func (l *Lane) recall(groups []*Group) []*Group {
	watch, skips := l.node.Stopwatch(), l.Worker.SkipsLocked()
	l.these = l.these[:0]
	for _, g := range groups {
		if l.node.Outdated(g.Target) {
			g.Finish(&model.StaleError{})
			continue
		}
		swap := false
		if len(g.Target.Counters) == 1 && !skips {
			g.knows, swap = g.Target.Recall(&g.known, watch)
		}
		if swap {
			l.these = append(l.these, g)
		} else {
			l.HandOver(g)
		}
	}
	return l.these
}

// mostStale is the share of stale rows, in 1024ths, from which the lane reads each row before the swap. A read
// costs half as much as a failed swap.
const mostStale = 256

// plan decides the groups with the Go model, and sorts them by how their rows must be written. A group whose row
// must be read first is not decided yet.
func (l *Lane) plan(groups []*Group) {
	for _, g := range groups {
		w := byReading
		if g.read || l.stale < mostStale {
			w = g.plan()
		}
		switch w {
		case bySwap:
			l.swaps.Groups = append(l.swaps.Groups, g)
		case byMaking:
			l.makes.Groups = append(l.makes.Groups, g)
		case byReading:
			l.reading = append(l.reading, g)
		default:
			l.finishUnwritten(g, w)
		}
	}
}

// swap writes, creates and reads the rows of the batch's groups, and ends the groups.
func (l *Lane) swap(ctx context.Context) {
	for _, w := range []*Writing{&l.swaps, &l.makes} {
		for _, g := range w.takeRepeated(l.Session.Faults) {
			l.HandOver(g)
		}
	}
	if err := l.sendAll(ctx); err != nil {
		l.lost(err, true)
		return
	}
	l.countLost()
	for _, w := range []*Writing{&l.swaps, &l.makes} {
		for _, g := range w.Groups {
			l.finish(g)
		}
	}
	for _, g := range l.reading {
		l.finishReading(g)
	}
	l.PutBack(l.again...)
	clear(l.again)
	l.again = l.again[:0]
}

// sendAll creates, reads and writes rows in one round trip. It creates rows first, because an INSERT must precede
// all row locks (docs/decisions/lock-order.md).
func (l *Lane) sendAll(ctx context.Context) error {
	var steps []session.Step
	hits := 0
	if len(l.makes.Groups) > 0 {
		steps = append(steps, l.makes.step(MakeRows))
		hits += l.makes.hits()
	}
	if len(l.reading) > 0 {
		steps = append(steps, l.recallStep())
	}
	if len(l.swaps.Groups) > 0 {
		steps = append(steps, l.swaps.step(SwapRows))
		hits += l.swaps.hits()
	}
	return l.send(ctx, hits, steps...)
}

// send makes one round trip, which is one transaction that charges hits.
func (l *Lane) send(ctx context.Context, hits int, steps ...session.Step) error {
	if len(steps) == 0 {
		return nil
	}
	l.node.Totals.Batch(hits, len(steps))
	began := l.node.Stopwatch()
	err := l.Session.Conn.Run(ctx, steps)
	took := l.node.Stopwatch() - began
	if hits == 0 {
		l.node.Metrics.Lane.Read(took)
		return err
	}
	l.node.Metrics.Lane.Batch(hits)
	l.node.Metrics.Lane.Write(took)
	return err
}

// recallStep returns a step that reads rows.
func (l *Lane) recallStep() session.Step {
	slices.SortFunc(l.reading, func(a, b *Group) int { return model.CompareKeys(a.Own(), b.Own()) })
	l.keys.Reset()
	for _, g := range l.reading {
		l.keys.Add(g.Own())
	}
	l.asked.Reset()
	l.keys.Encode(&l.asked)
	return session.Step{Name: recallRows, Params: l.asked.Values(), Read: l.readRows}
}

// readRows reads the result of recallSQL. A row that is absent from the result is known to be missing.
func (l *Lane) readRows(r *pgconn.ResultReader) error {
	there := make([]bool, len(l.reading))
	same, of := 0, 0
	err := session.EachRow(r, len(l.reading), func(n int, cols [][]byte) error {
		g := l.reading[n]
		version, at := g.known.Version, g.known.At
		there[n] = true
		// A row that cannot be read affects only its own group, and the worker reports the error.
		spoiled := readKnown(&g.known, cols) != nil || g.Target.Check("", &g.known.Row) != nil
		if g.knows {
			of++
			if g.known.Version == version && g.known.At == at {
				same++
			}
		}
		g.knows = !spoiled
		return nil
	})
	for i, g := range l.reading {
		g.read = true
		if !there[i] {
			g.known, g.knows = model.Known{Missing: true}, true
		}
	}
	l.noteStale(of-same, of)
	return err
}

// noteStale updates the share of stale rows with a sample: of of remembered rows, stale rows had been changed by
// another writer.
func (l *Lane) noteStale(stale, of int) {
	if of > 0 {
		l.stale += (1024*stale/of - l.stale) / 8
	}
}

// countLost counts the failed swaps.
func (l *Lane) countLost() {
	lost, stale, remembered := 0, 0, 0
	for _, g := range l.swaps.Groups {
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
	l.noteStale(stale, remembered)
	l.node.Totals.Swapped.Add(int64(len(l.swaps.Groups) - lost))
	l.node.Totals.SwapsLost.Add(int64(lost))
}
