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

// Lane decides the hits of its share of the customers by swaps. It has one session and one
// batch in flight; meanwhile the next batch gathers. Hits that no swap can charge go to the
// lane's worker.
type Lane struct {
	node    *queue.Node
	Worker  *locked.Worker
	Session session.Session
	queue.Inbox[*queue.Hit]

	// Owned by the lane's goroutine.
	now   int64        // of the batch, µs
	again []*queue.Hit // to be put back, since their rows were read
	batch []*queue.Hit
	gathering
	these   []*Group // that the lane decides
	stale   int      // recent share of remembered rows that somebody else had written, in 1024ths
	swaps   Writing  // rows to be written
	makes   Writing  // rows to be made
	reading []*Group // rows to be read
	keys    session.Columns
	asked   session.Params // of those
	row     [1]model.Row   // as the memory of refusals wants it
}

// New is a lane of a node, which hands over to a worker. Run runs it.
func New(n *queue.Node, to *locked.Worker) *Lane {
	return &Lane{
		node: n, Worker: to, Inbox: queue.NewInbox[*queue.Hit](&n.Totals.Over),
		Session: session.Session{Options: &n.Options, Statements: Statements(), Beside: &to.Session},
	}
}

// Run sends batches until the engine stops and nothing waits any more.
func (l *Lane) Run(ctx context.Context) {
	defer l.Session.Close()
	_ = l.Session.Ready(ctx) // the first hit finds a session, or is told why not
	l.Session.End()
	l.Inbox.Run(func() { l.Next(ctx) })
}

// Enqueue adds hits of one sender after those of its that wait, unless the database is too slow to be
// waited for: see queue.Inbox and session.Circuit.
func (l *Lane) Enqueue(most int, hits ...*queue.Hit) (added int, err error) {
	if err = l.node.Circuit.Err(); err != nil {
		return 0, err
	}
	return l.Inbox.Enqueue(most, hits...)
}

// take makes the next batch of what waits, but for hits whose callers gave up.
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

// Next decides one batch. The hits are taken from their callers only when there is a
// session and a clock, so that what waits for those can still be given up.
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
	if len(l.reading) > len(l.swaps.Groups)+len(l.makes.Groups) { // else a few do not keep the others waiting
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

// recall looks up the remembered rows of the groups, and returns the groups that the lane
// decides. It hands the others over to the worker. These are hits on several counters, which a
// swap could charge in part, and hits on a counter that the worker has. Hits whose targets are of
// another history of the database are to be resolved again.
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

// mostStale bounds the lane's stale, in 1024ths. From this share on, the lane reads each row
// before the swap: to read a row costs half of what a lost swap does.
const mostStale = 256

// plan has the Go model decide the groups, and sorts them by how their rows are to be written.
// A group whose row must be read first is not decided yet.
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

// swap writes, makes and reads the rows of the batch's groups, and hands out what came of it.
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

// sendAll makes, reads and writes rows in one round trip. Rows are made first: an INSERT must
// come before any row is locked (docs/decisions/lock-order.md).
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

// send makes one round trip and transaction that is to charge so many hits.
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

// recallStep reads rows.
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

// readRows reads what recallSQL returns. A row that is not there is known to be missing.
func (l *Lane) readRows(r *pgconn.ResultReader) error {
	there := make([]bool, len(l.reading))
	same, of := 0, 0
	err := session.EachRow(r, len(l.reading), func(n int, cols [][]byte) error {
		g := l.reading[n]
		version, at := g.known.Version, g.known.At
		there[n] = true
		// A row that cannot be read is the fault of its own group: the worker says so.
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

// noteStale updates the share of stale rows: of so many remembered rows, stale ones had been written by
// somebody else.
func (l *Lane) noteStale(stale, of int) {
	if of > 0 {
		l.stale += (1024*stale/of - l.stale) / 8
	}
}

// countLost counts the swaps that were in vain.
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
