package session

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"quotad/internal/postgres"
)

// ErrSlow is an ErrUnavailable for a database that can be reached but responds too slowly. Nothing was charged.
var ErrSlow = fmt.Errorf("%w: it answers too slowly", ErrUnavailable)

// Circuit is a circuit breaker that reports whether the database responds in time. While the circuit is open,
// nothing is sent that charges, except for one probe at a time. The first probe that commits closes the circuit. A
// nil Circuit never opens.
type Circuit struct {
	within   time.Duration // the maximum duration of a batch
	probe    string        // the SQL of a transaction that needs the same resources as a charge
	options  *Options
	sessions []*Session

	isOpen     atomic.Bool
	generation atomic.Int64       // the number of closings; after each closing, every session is checked
	suspected  chan time.Duration // the start of a batch that may have met a slow database, on the stopwatch
	// recovered is the time on the stopwatch at which the circuit was last closed. A batch that began earlier does
	// not show the state of the database since then. Only the goroutine of Run uses recovered.
	recovered time.Duration

	mu    sync.Mutex         // guards round and kick, and prevents a look from ending while it opens the circuit
	round context.Context    // ends when a probe has committed
	kick  context.CancelFunc // ends round
}

const (
	// looksWithin is the number of checks for late batches within the time of a batch.
	looksWithin = 20
	// probePause is the pause between two probes.
	probePause = 100 * time.Millisecond
	// probeLimit is the maximum duration of a probe after it has connected.
	probeLimit = 2 * time.Second
	// connectShare and opensAfter are fractions of the time of a batch. connectShare is the time in which a probe
	// must connect. opensAfter is the time in which it must commit before the circuit opens.
	connectShare, opensAfter = 0.5, 0.3
	// cutAfter is the fraction of the time of a batch after which nobody waits for the batch any more.
	cutAfter = 1.1
	// returnLimit is the time in which late batches may end by themselves after a probe has committed. Then their
	// connections are cut, and the batches have the same time again.
	returnLimit = 100 * time.Millisecond
)

// NewCircuit returns a circuit for a database that must end each batch within the given time. probe is a
// transaction that waits for the same resources as batches. Run runs the circuit.
func NewCircuit(within time.Duration, probe string, o *Options) *Circuit {
	c := &Circuit{within: within, probe: probe, options: o, suspected: make(chan time.Duration, 1)}
	c.round, c.kick = context.WithCancel(context.Background())
	return c
}

// Err returns ErrSlow while the circuit is open, and otherwise nil.
func (c *Circuit) Err() error {
	if c == nil || !c.isOpen.Load() {
		return nil
	}
	return ErrSlow
}

// suspect makes the circuit send a probe soon if a statement of a batch took too long, or waited too long for a
// lock. The cause may be a locked row or a slow database. began is the start of the batch on the stopwatch.
func (c *Circuit) suspect(err error, began time.Duration) {
	if c == nil || !tookTooLong(err) {
		return
	}
	select {
	case c.suspected <- began:
	default:
	}
}

// tookTooLong reports whether the server cancelled a statement because of its duration or its wait for a lock.
func tookTooLong(err error) bool {
	state := StateOf(err)
	return state == "55P03" || state == "57014"
}

// Run watches sessions until ctx ends.
func (c *Circuit) Run(ctx context.Context, sessions []*Session) {
	c.sessions = sessions
	looks := time.NewTicker(c.within / looksWithin)
	defer looks.Stop()
	cleared := -c.within // the time at which a probe last committed in time
	for {
		select {
		case <-ctx.Done():
			return
		case began := <-c.suspected:
			if began < c.recovered {
				continue
			}
		case <-looks.C:
			now := c.options.Stopwatch()
			c.cutLate(now, c.part(cutAfter))
			// If the database commits, a late batch has another cause. The circuit then sends the next probe only
			// after the time of a batch.
			if now-cleared < c.within || !c.late(now, c.within-c.within/10) {
				continue
			}
		}
		c.look(ctx)
		cleared = c.options.Stopwatch()
	}
}

// late reports whether a session has been working on a batch for longer than a time. Batches that began before the
// end of the last outage do not count.
func (c *Circuit) late(now, than time.Duration) bool {
	for _, s := range c.sessions {
		if s.busyFor(now) > than && s.began() >= c.recovered {
			return true
		}
	}
	return false
}

// part returns a fraction of the time of a batch.
func (c *Circuit) part(of float64) time.Duration { return time.Duration(of * float64(c.within)) }

// cutLate cuts the connections of sessions that have been working on their batch for longer than a time. Their
// connections may be dead without notice, although the database commits. The next caller uses another session.
func (c *Circuit) cutLate(now, than time.Duration) {
	for _, s := range c.sessions {
		if s.busyFor(now) > than {
			s.cut()
		}
	}
}

// look sends a probe. If the probe does not commit soon, the circuit is open until a probe commits.
func (c *Circuit) look(ctx context.Context) {
	began := c.options.Stopwatch()
	look, over := context.WithCancel(ctx)
	defer over()
	late := time.AfterFunc(c.part(opensAfter), func() { c.open(look, nil) })
	defer late.Stop()
	err := c.try(ctx)
	for tooSlow(err) && ctx.Err() == nil {
		c.open(look, err)
		if !postgres.Sleep(ctx, probePause) {
			return
		}
		err = c.try(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	over()
	wasOpen := c.isOpen.Load()
	c.mu.Unlock()
	if wasOpen {
		c.close(ctx, c.options.Stopwatch()-began)
	}
}

// open opens the circuit, unless the look has ended because its probe has committed in the meantime. The next look
// may have begun, and has a probe of its own.
func (c *Circuit) open(look context.Context, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if look.Err() != nil || !c.isOpen.CompareAndSwap(false, true) {
		return
	}
	if why == nil {
		c.options.Log.Warn("the database is too slow: on_outage decides hits until it commits in time", "decide_within", c.within)
		return
	}
	c.options.Log.Warn("the database is too slow: on_outage decides hits until it commits in time", "decide_within", c.within, "error", why)
}

// tooSlow reports whether an error of a probe means only that the database did not respond in time. Any other
// error is a response of the database. Sessions receive the same error and report it.
func tooSlow(err error) bool { return err != nil && (postgres.Outage(err) || tookTooLong(err)) }

// try sends one probe on a new connection, because existing connections may have died without notice.
func (c *Circuit) try(ctx context.Context) error {
	connecting, cancel := context.WithTimeout(ctx, c.part(connectShare))
	defer cancel()
	conn, err := c.options.Connect(connecting)
	if err != nil {
		return err
	}
	ctx, cancelProbe := context.WithTimeout(ctx, c.options.atLeast(probeLimit))
	defer cancelProbe()
	defer func() { _ = conn.Close(ctx) }()
	if _, err = conn.PgConn().Exec(ctx, c.probe).ReadAll(); err == nil {
		_, err = c.options.Now(ctx) // hits need the clock, too
	}
	return err
}

// close closes the circuit after a probe has committed. First it ensures that sessions can be used at once.
// Sessions that are being connected start again, and sessions whose batches stay late are cut.
func (c *Circuit) close(ctx context.Context, after time.Duration) {
	c.mu.Lock()
	c.kick()
	c.round, c.kick = context.WithCancel(context.Background())
	c.mu.Unlock()
	c.generation.Add(1)
	c.await(ctx)
	c.cutLate(c.options.Stopwatch(), 0)
	c.await(ctx)
	c.recovered = c.options.Stopwatch()
	c.options.Troubles.forgive(c.recovered, c.part(cutAfter))
	c.isOpen.Store(false)
	c.options.Log.Info("the database commits in time again: hits are charged", "after", after.Round(time.Millisecond))
}

// await waits until no session is busy, for at most returnLimit.
func (c *Circuit) await(ctx context.Context) {
	const pause = 5 * time.Millisecond
	for waited := time.Duration(0); waited < returnLimit && c.late(c.options.Stopwatch(), 0); waited += pause {
		if !postgres.Sleep(ctx, pause) {
			return
		}
	}
}

// attempts returns a context for the creation of a session. The context ends with ctx, and when a probe has
// committed, because an earlier attempt may wait for a response that does not arrive.
func (c *Circuit) attempts(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if c == nil {
		return ctx, cancel
	}
	c.mu.Lock()
	round := c.round
	c.mu.Unlock()
	stop := context.AfterFunc(round, cancel)
	return ctx, func() { stop(); cancel() }
}

// closings returns the number of times that the circuit was closed.
func (c *Circuit) closings() int64 {
	if c == nil {
		return 0
	}
	return c.generation.Load()
}

// Grace returns the maximum time for which an operation may wait for its batch after the operation's deadline.
func (c *Circuit) Grace(most time.Duration) time.Duration {
	if c == nil {
		return most
	}
	return min(most, c.within/10)
}
