package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
	"quotad/internal/quota/session"
)

const (
	pollEvery = 250 * time.Millisecond
	pollRows  = 1000 // most changes that one poll applies
)

// Run keeps the memory current until ctx ends, and then returns nil. Run polls the table of changes every
// 250 ms and at every notification. Polls and notifications each have a connection. Correctness depends
// on polls only, and notifications merely make polls happen sooner. Both continue through an outage.
func (c *Catalog) Run(ctx context.Context) error {
	var listening sync.WaitGroup
	listening.Go(func() { c.listen(ctx) })
	defer listening.Wait()
	c.follow(ctx)
	c.poller.close()
	return nil
}

// follow polls until ctx ends.
func (c *Catalog) follow(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-c.wake:
		}
		more, err := c.poll(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			c.options.Log.Warn("cannot ask the database for changes", "error", err)
		case err == nil && failing:
			c.options.Log.Info("the database answers for changes again")
		}
		failing = err != nil
		if errors.Is(err, session.ErrUnavailable) || errors.Is(err, session.ErrNoSession) {
			c.trouble.Store(&err)
		} else {
			c.trouble.Store(nil)
		}
		pause := pollEvery
		if more {
			pause = 0
		}
		timer.Reset(pause)
	}
}

// signal makes the poller poll at once.
func (c *Catalog) signal() {
	select {
	case c.wake <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// CatchUp returns when every change up to number is applied on this node. It queries the database only if
// a change is not applied yet. Errors: session.ErrUnavailable, and session.ErrBusy if the database lacks
// the change because it was restored to an older state.
func (c *Catalog) CatchUp(ctx context.Context, number int64) error {
	// The first poll may have begun before the change was made. The second poll cannot have.
	for ends := 0; ends < 2; {
		if m := c.memory.Load(); m.contacted && m.applied.Load() >= number {
			return nil
		}
		more, err := c.poll(ctx)
		if err != nil {
			return err
		}
		if !more {
			ends++
		}
	}
	if applied := c.Applied(); applied < number {
		return fmt.Errorf("%w: it went back from change %d to %d", session.ErrBusy, number, applied)
	}
	return nil
}

// Renew returns when every change that was made before the call is applied on this node. Errors:
// session.ErrUnavailable.
func (c *Catalog) Renew(ctx context.Context) error {
	for ends := 0; ends < 2; { // the first poll may have begun before the call
		more, err := c.poll(ctx)
		if err != nil {
			return err
		}
		if !more {
			ends++
		}
	}
	return nil
}

// poll reads and applies the next changes, pollRows at most. Simultaneous callers share one poll. more is
// true if there are further changes. Each poll makes progress, however many changes there are.
func (c *Catalog) poll(ctx context.Context) (more bool, err error) {
	return fly(ctx, c.options.Within, &c.polls, "", func(ctx context.Context) (more bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, c.options.Within/2)
		defer cancel()
		began := c.options.Monotonic()
		err = c.poller.use(ctx, func(conn *pgx.Conn) error {
			more, err = c.pollPage(ctx, conn)
			return err
		})
		if err == nil && !more {
			c.confirmed.Store(int64(began))
		}
		return more, err
	})
}

// pollPage makes one poll. more is true if there are further changes.
func (c *Catalog) pollPage(ctx context.Context, conn *pgx.Conn) (more bool, err error) {
	m := c.memory.Load()
	last := m.applied.Load()
	newest, changes, err := changesFrom(ctx, conn, last)
	if err != nil {
		return false, err
	}
	if !m.contacted || !follows(changes, *m.mark.Load(), newest) {
		return false, c.reload(ctx, conn, newest, changes)
	}
	if last > 0 {
		changes = changes[1:]
	}
	if len(changes) == 0 {
		return false, nil
	}
	keys := m.keys.Load()
	for _, change := range changes {
		if change.kind == store.KindKey {
			if keys, err = readKeys(ctx, conn); err != nil {
				return false, err
			}
			m.end(m.keys.Load(), keys)
			break
		}
	}
	m.keys.Store(keys)
	if slices.ContainsFunc(changes, func(c change) bool { return c.kind == store.KindMeter }) {
		returning, err := readReturning(ctx, conn)
		if err != nil {
			return false, err
		}
		m.returning.Store(returning)
	}
	for _, change := range changes {
		m.apply(change)
	}
	end := changes[len(changes)-1]
	m.mark.Store(new(end.mark()))
	m.applied.Store(end.number)
	return end.number < newest, nil
}

// follows reports whether the changes that were read continue the applied changes. The last applied
// change must still exist unchanged, and no number may be missing. Otherwise the node was away for longer
// than changes are kept, or this is another database or an older state of the database.
func follows(changes []change, seen mark, newest int64) bool {
	last := seen.number
	if last > 0 && (len(changes) == 0 || changes[0].mark() != seen) {
		return false
	}
	next := max(last, 1)
	for _, change := range changes {
		if change.number != next {
			return false
		}
		next++
	}
	return newest >= last && (newest == last || len(changes) > 0)
}

// wentBack reports whether changes that do not follow the last seen change show that the database was
// restored to an older state. In that case the seen change is missing or another change has its number. A
// node that was away for long may instead have missed changes that are no longer kept.
func wentBack(changes []change, seen mark, newest int64) bool {
	if len(changes) > 0 && changes[0].number == seen.number {
		return changes[0].token != seen.token
	}
	return seen.number > newest-store.KeptChanges
}

const selectNewest = `SELECT at, token FROM changes WHERE number = $1`

// reload replaces the memory with an empty memory that begins at the newest change.
func (c *Catalog) reload(ctx context.Context, conn *pgx.Conn, newest int64, changes []change) error {
	old := c.memory.Load()
	m := newMemory(old.generation+1, c.options.Customers, old.packed)
	began, at := mark{number: newest}, time.UnixMicro(0)
	if err := conn.QueryRow(ctx, selectNewest, newest).Scan(&at, &began.token); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	keys, err := readKeys(ctx, conn)
	if err != nil {
		return err
	}
	returning, err := readReturning(ctx, conn)
	if err != nil {
		return err
	}
	m.keys.Store(keys)
	m.returning.Store(returning)
	m.applied.Store(newest)
	m.mark.Store(&began)
	m.since, m.contacted = at.UnixMicro(), true
	c.memory.Store(m)
	switch seen := old.mark.Load(); {
	case !old.contacted:
	case wentBack(changes, *seen, newest):
		c.wentBack.Add(1)
		c.options.Log.Warn("the database went back: changes that this node saw are not there any more. It forgot everything, and goes by what is there now. "+
			"After a failover or a restore, make again the admin writes that were lost", "seen", seen.number, "newest", newest)
	default:
		c.options.Log.Warn("the changes in the database do not follow those seen; forgot everything",
			"seen", seen.number, "newest", newest, "read", len(changes))
	}
	return nil
}

// Confirm checks on a new connection that its database has the newest change that this node saw. If the
// database lacks the change, Confirm replaces the memory, as a poll would do. Earlier results then have
// another History.
func (c *Catalog) Confirm(ctx context.Context, conn *pgx.Conn) error {
	if m := c.memory.Load(); m.contacted {
		same, err := m.mark.Load().has(ctx, conn)
		if err != nil || same && c.memory.Load() == m {
			return err
		}
	}
	return c.poller.instead(func() error {
		_, err := c.pollPage(ctx, conn)
		return err
	})
}

// History returns a number that changes whenever the changes in the database do not follow the changes
// that this node saw, see model.Target.SetHistory.
func (c *Catalog) History() uint64 { return c.memory.Load().generation }

// WentBack returns how often this node found the database restored to an older state.
func (c *Catalog) WentBack() int64 { return c.wentBack.Load() }
