package lane

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"quotad/internal/postgres"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// finish ends a group after the attempt to write its row.
func (l *Lane) finish(g *Group) {
	if !g.done {
		g.Target.Contended(l.node.Stopwatch())
		l.HandOver(g)
		return
	}
	if g.known.Change > g.after.Change {
		l.node.WentBack(g.Own(), 1)
	}
	g.Target.Keep(&g.after)
	l.remember(g, g.after.Row)
	l.node.WatchAhead(g.Target, len(g.Hits), g.after.At-g.now)
	g.Finish(nil)
}

// finishReading ends a group whose row was read in the same round trip as the swaps of other groups. Hits that
// require a write return to the queue, for a batch that knows the row.
func (l *Lane) finishReading(g *Group) {
	w := g.plan()
	if w != bySwap && w != byMaking {
		l.finishUnwritten(g, w)
		return
	}
	g.Target.Keep(&g.known)
	l.again = appendRequeued(l.again, g.Hits)
}

// finishUnwritten ends a group for which the lane writes nothing.
func (l *Lane) finishUnwritten(g *Group, w way) {
	switch w {
	case asItStands:
		g.Target.Keep(&g.known)
		l.remember(g, g.known.Row)
		l.node.WatchAhead(g.Target, len(g.Hits), g.known.At-g.now)
		g.Finish(nil)
	case asStale:
		g.Finish(g.stale)
	default:
		l.HandOver(g)
	}
}

// remember adds the group's row to the memory of refusals before a caller receives a result, because the caller's
// next hit may arrive at once.
func (l *Lane) remember(g *Group, r model.Row) {
	l.row[0] = r
	l.node.Memory.Remember(g.Target, l.row[:], l.now, g.Refused)
}

// appendRequeued appends hits that were in a batch, except for hits whose callers have left.
func appendRequeued(to, hits []*queue.Hit) []*queue.Hit {
	for _, h := range hits {
		if h.Requeue() {
			to = append(to, h)
		}
	}
	return to
}

// HandOver passes a group's hits to the worker, as one group for each sender.
func (l *Lane) HandOver(g *Group) {
	hits := appendRequeued(make([]*queue.Hit, 0, len(g.Hits)), g.Hits)
	slices.SortStableFunc(hits, func(a, b *queue.Hit) int { return cmp.Compare(a.From, b.From) })
	for len(hits) > 0 {
		n := 1
		for n < len(hits) && hits[n].From == hits[0].From {
			n++
		}
		o := locked.NewGroup(g.Target, hits[:n:n])
		if err := l.Worker.Enqueue(o); err != nil && o.Take() {
			o.Finish(err)
		}
		hits = hits[n:]
	}
}

// lost ends a batch whose round trip failed. wrote reports whether the round trip was meant to charge hits.
//
// A batch that the server rolled back is passed to the worker. The worker does not wait for rows that are locked
// for long. It also isolates a statement that the server rejects, so that other customers' hits do not fail.
//
// A batch with an unknown outcome is never sent again, because its hits could be charged twice.
func (l *Lane) lost(err error, wrote bool) {
	unwritten, written := fmt.Errorf("%w: %w", session.ErrUnavailable, err), fmt.Errorf("%w: %w", session.ErrOutcomeUnknown, err)
	if !wrote {
		written = unwritten
	}
	again := false
	l.Session.Suspect(err)
	switch {
	case session.NotSent(err):
		written = unwritten
	case !postgres.NotCommitted(err):
		l.Session.Drop()
	case !session.RolledBack(err): // nothing was charged, and the session has ended
		l.Session.Drop()
		written = unwritten
	case session.Hopeless(err):
		unwritten = l.Session.Refuse(err)
		written = unwritten
	default:
		again = true
		if postgres.Retryable(err) {
			l.Worker.SkipLocked()
		}
	}
	end := func(groups []*Group, err error) {
		for _, g := range groups {
			if again {
				l.node.Totals.Retried.Add(int64(len(g.Hits)))
				l.HandOver(g)
				continue
			}
			if errors.Is(err, session.ErrOutcomeUnknown) {
				l.node.Totals.Unknown.Add(int64(len(g.Hits)))
			}
			g.Finish(err)
		}
	}
	end(l.swaps.Groups, written)
	end(l.makes.Groups, written)
	end(l.reading, unwritten)
}
