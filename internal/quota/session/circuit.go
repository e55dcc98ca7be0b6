package session

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"quotad/internal/postgres"
)

// ErrSlow is an ErrUnavailable of a database that is there, and answers too slowly to be waited for.
// Nothing was charged.
var ErrSlow = fmt.Errorf("%w: it answers too slowly", ErrUnavailable)

// Circuit says whether the database answers in time. While it is open, nothing is sent that charges,
// but for one probe at a time. The first probe that commits closes it. A nil Circuit never opens.
type Circuit struct {
	within   time.Duration // how long a batch may take
	probe    string        // SQL of a transaction that needs what charging needs
	options  *Options
	sessions []*Session

	isOpen     atomic.Bool
	generation atomic.Int64       // how often it was closed: each session is asked then whether it is alive
	suspected  chan time.Duration // when a batch began that met what may be a slow database, on the stopwatch
	// recovered is when the circuit was last closed, on the stopwatch. A batch that began before says
	// nothing about the database since. Only the goroutine of Run uses recovered.
	recovered time.Duration

	mu    sync.Mutex         // guards round and kick, and keeps a look from ending while it opens the circuit
	round context.Context    // ends when a probe has committed
	kick  context.CancelFunc // ends round
}

const (
	// looksWithin is how often in the time of a batch the circuit looks whether one is late.
	looksWithin = 20
	// probePause is between two probes.
	probePause = 100 * time.Millisecond
	// probeLimit bounds a probe from when it is connected on.
	probeLimit = 2 * time.Second
	// connectShare and opensAfter are parts of the time of a batch: how long a probe may take to connect,
	// and to commit, until the circuit opens.
	connectShare, opensAfter = 0.5, 0.3
	// cutAfter is the part of the time of a batch after which nobody waits for the batch any more.
	cutAfter = 1.1
	// returnLimit is how long late batches have to end by themselves once a probe has committed. After
	// it their connections are cut, and they have as long again.
	returnLimit = 100 * time.Millisecond
)

// NewCircuit is a circuit for a database that is to end each batch within a time, in which probe is a
// transaction that waits for whatever batches wait for. Run runs it.
func NewCircuit(within time.Duration, probe string, o *Options) *Circuit {
	c := &Circuit{within: within, probe: probe, options: o, suspected: make(chan time.Duration, 1)}
	c.round, c.kick = context.WithCancel(context.Background())
	return c
}

// Err is ErrSlow while the circuit is open, else nil.
func (c *Circuit) Err() error {
	if c == nil || !c.isOpen.Load() {
		return nil
	}
	return ErrSlow
}

// suspect has the circuit send a probe soon, if a statement of a batch waited too long for a lock, or took
// too long: one row may be held, or the database may be slow. began is when the batch began, on the stopwatch.
func (c *Circuit) suspect(err error, began time.Duration) {
	if c == nil || !tookTooLong(err) {
		return
	}
	select {
	case c.suspected <- began:
	default:
	}
}

// tookTooLong reports whether the server cancelled a statement for its time, or for that of a lock.
func tookTooLong(err error) bool {
	state := StateOf(err)
	return state == "55P03" || state == "57014"
}

// Run watches sessions until ctx ends.
func (c *Circuit) Run(ctx context.Context, sessions []*Session) {
	c.sessions = sessions
	looks := time.NewTicker(c.within / looksWithin)
	defer looks.Stop()
	cleared := -c.within // when a probe last committed in time
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
			// A batch that is late beside a database that commits is late by itself: it is asked again
			// only after as long.
			if now-cleared < c.within || !c.late(now, c.within-c.within/10) {
				continue
			}
		}
		c.look(ctx)
		cleared = c.options.Stopwatch()
	}
}

// late reports whether a session has had a batch for longer than a time, and since the last outage.
func (c *Circuit) late(now, than time.Duration) bool {
	for _, s := range c.sessions {
		if s.busyFor(now) > than && s.began() >= c.recovered {
			return true
		}
	}
	return false
}

// part is a part of the time of a batch.
func (c *Circuit) part(of float64) time.Duration { return time.Duration(of * float64(c.within)) }

// cutLate cuts the sessions that have had their batch for longer than a time. Their connections may be
// dead, without a word, beside a database that commits. Whoever waits next has another session.
func (c *Circuit) cutLate(now, than time.Duration) {
	for _, s := range c.sessions {
		if s.busyFor(now) > than {
			s.cut()
		}
	}
}

// look sends a probe. If it does not commit soon, the circuit is open until one does.
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

// open opens the circuit, unless the look is over, since its probe has committed meanwhile. The next look may
// have begun: it has a probe of its own.
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

// tooSlow reports whether an error of a probe says nothing but that the database did not answer in
// time. With any other error the database has answered: sessions hear the same, and say so.
func tooSlow(err error) bool { return err != nil && (postgres.Outage(err) || tookTooLong(err)) }

// try sends one probe, on a connection of its own: others may have died without a word.
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
		_, err = c.options.Now(ctx) // hits need it, too
	}
	return err
}

// close closes the circuit after a probe has committed. First it sees to it that sessions can be used
// at once: those that are made begin again, and those whose batches stay late are given up.
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

// await waits until no session is busy, for returnLimit at most.
func (c *Circuit) await(ctx context.Context) {
	const pause = 5 * time.Millisecond
	for waited := time.Duration(0); waited < returnLimit && c.late(c.options.Stopwatch(), 0); waited += pause {
		if !postgres.Sleep(ctx, pause) {
			return
		}
	}
}

// attempts is a context for making a session: it ends with ctx, and when a probe has committed. An
// attempt that began before may wait for an answer that does not come.
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

// closings is how often the circuit was closed.
func (c *Circuit) closings() int64 {
	if c == nil {
		return 0
	}
	return c.generation.Load()
}

// Grace is how much longer than its deadline an operation may wait for the batch that it is in, at most.
func (c *Circuit) Grace(most time.Duration) time.Duration {
	if c == nil {
		return most
	}
	return min(most, c.within/10)
}
