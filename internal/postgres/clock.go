package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/singleflight"
)

const (
	measureEvery   = 5 * time.Second
	retryEvery     = 500 * time.Millisecond // while measurements fail
	defaultWithin  = 2 * time.Second        // one measurement, connecting included
	measureTries   = 5                      // round trips at most; the narrowest counts
	narrowEnough   = 2 * time.Millisecond   // no further try needed
	defaultWidth   = 100 * time.Millisecond // a wider round trip is too inexact
	maxAge         = 15 * time.Second       // how old a measurement Now uses
	maxEstimateAge = 60 * time.Second       // how old a measurement Estimate uses
	// maxStep is how far the wall clock may move against the monotonic one before a
	// measurement is dropped. After a suspend or a migration of the machine the monotonic
	// clock has lost time.
	maxStep = 50 * time.Millisecond
	// failPause is how long after a failed measurement Now fails at once, so
	// that an outage does not become a queue of attempts.
	failPause = 100 * time.Millisecond
	// maxJump is how far the server's clock may move against the monotonic one before it has
	// stepped. A step is used when a second measurement, confirmAfter later, agrees with the first
	// within sameStep: a server that slews its clock at full speed moves it by a tenth of that time.
	maxJump      = time.Second
	confirmAfter = time.Second
	sameStep     = 250 * time.Millisecond
)

// sharedFor is how long a measurement is shared: within this time nobody begins another.
const sharedFor = 100 * time.Millisecond

// ErrClockUnsure is returned while the time of the database cannot be told
// well enough to charge by it.
var ErrClockUnsure = errors.New("the database's time is not known well enough")

// instant is one reading of the local clocks, in ns.
type instant struct {
	mono int64 // since the process started; never set back
	wall int64 // since the Unix epoch, as the machine believes
}

// measurement ties the server's time to the local clocks.
type measurement struct {
	at     instant
	server int64 // µs since the Unix epoch, at that instant
	width  int64 // ns; the round trip. The error is at most half of it
}

// Clock tells PostgreSQL's time, which is the one clock of all nodes, without a statement for
// each call. Its methods may be called from any goroutine.
type Clock struct {
	// Within bounds a measurement, connecting included; 0 means 2 s. Width bounds its round trip: the
	// error is at most half of it; 0 means 100 ms. They are set before the first measurement.
	Within, Width time.Duration

	connect func(context.Context) (*pgx.Conn, error)
	log     *slog.Logger
	local   func() instant                             // the machine's clocks
	measure func(context.Context) (measurement, error) // asks the server

	current atomic.Pointer[measurement]
	failed  atomic.Pointer[failure]
	flight  singleflight.Group
	steps   atomic.Int64
	doubts  chan struct{} // wakes Run to confirm a step

	// Owned by the measurement in flight.
	trusted *measurement // the last one that was used as it was taken
	doubted *measurement // one that shows a step, which is not confirmed yet; else nil

	mu     sync.Mutex // guards conn and closed; held during a measurement
	conn   *pgx.Conn
	closed bool
}

// failure is the last measurement that failed.
type failure struct {
	mono int64
	err  error
}

// NewClock makes a clock for the database. It uses one connection of its own,
// opened at the first need and closed by Close, so that it never waits for a
// pool. Nothing runs yet: Run keeps it measured. log may be nil.
func NewClock(databaseURL string, log *slog.Logger) *Clock {
	if log == nil {
		log = slog.Default()
	}
	base := time.Now()
	c := &Clock{connect: Connector(databaseURL, nil), log: log, doubts: make(chan struct{}, 1)}
	c.local = func() instant {
		now := time.Now() // one call reads both clocks
		return instant{mono: int64(now.Sub(base)), wall: now.UnixNano()}
	}
	c.measure = c.measureServer
	return c
}

// Run measures every few seconds until ctx ends, and a second after a measurement that shows a
// step. Failures are logged when they begin and when they end; Now reports them meanwhile.
func (c *Clock) Run(ctx context.Context) {
	unsure := false
	for pause := measureEvery; ; {
		_, err := c.remeasure(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !unsure:
			unsure, pause = true, retryEvery
			c.log.Warn("cannot tell the database's time", "error", err)
		case err == nil && unsure:
			unsure, pause = false, measureEvery
			c.log.Info("the database's time is known again")
		}
		if !c.rest(ctx, pause) {
			return
		}
	}
}

// rest waits for d, or for confirmAfter where a step is to be confirmed. It reports false when ctx
// ended first.
func (c *Clock) rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-c.doubts:
		return Sleep(ctx, confirmAfter)
	}
}

// Now returns the server's time in µs since the Unix epoch. While the last measurement is good
// it takes no lock and allocates nothing. Otherwise it measures first, for Within at
// most. Other callers share that measurement. When it does not help the error is
// ErrClockUnsure, or ctx's error.
func (c *Clock) Now(ctx context.Context) (us int64, err error) {
	now := c.local()
	if m := c.current.Load(); m != nil && m.good(now, maxAge) {
		return m.serverTime(now), nil
	}
	return c.nowMeasured(ctx, now)
}

// nowMeasured is Now's slow path.
func (c *Clock) nowMeasured(ctx context.Context, now instant) (int64, error) {
	if f := c.failed.Load(); f != nil && now.mono-f.mono < int64(failPause) {
		return 0, fmt.Errorf("%w: %w", ErrClockUnsure, f.err)
	}
	m, err := c.remeasure(ctx)
	if err != nil {
		return 0, err
	}
	now = c.local()
	if !m.good(now, maxAge) { // the machine slept in between
		return 0, fmt.Errorf("%w: the local clock moved during the measurement", ErrClockUnsure)
	}
	return m.serverTime(now), nil
}

// Estimate returns the server's time by a measurement of up to a minute ago. It is for answers
// in an outage that charge nothing. It never waits. ok is false when there is no such
// measurement, or the local clock moved.
func (c *Clock) Estimate() (us int64, ok bool) {
	now := c.local()
	m := c.current.Load()
	if m == nil || !m.good(now, maxEstimateAge) {
		return 0, false
	}
	return m.serverTime(now), true
}

// Quality tells the age of the present measurement and the width of its round trip. The error
// of the clock is at most half that width. ok is false when there is no measurement.
func (c *Clock) Quality() (age, width time.Duration, ok bool) {
	m := c.current.Load()
	if m == nil {
		return 0, 0, false
	}
	return time.Duration(c.local().mono - m.at.mono), time.Duration(m.width), true
}

// Offset is how far the server's clock, as it is used, is ahead of the machine's; below 0 where it
// is behind. ok is false when there is no measurement.
func (c *Clock) Offset() (ahead time.Duration, ok bool) {
	m := c.current.Load()
	if m == nil {
		return 0, false
	}
	return time.UnixMicro(m.server).Sub(time.Unix(0, m.at.wall)), true
}

// Steps is how many steps of the server's clock were confirmed.
func (c *Clock) Steps() int64 { return c.steps.Load() }

// Steady is an instant, µs, that a statement read from the server's clock, or Now where the two are
// further apart than a step: then the step is not confirmed yet. While Now fails there is nothing to
// compare with.
func (c *Clock) Steady(ctx context.Context, us int64) int64 {
	now, err := c.Now(ctx)
	if err != nil || within(us-now, maxJump) {
		return us
	}
	return now
}

// within reports whether a difference, µs, is at most d.
func within(us int64, d time.Duration) bool { return max(us, -us) <= d.Microseconds() }

// Close closes the clock's connection, after a measurement under way. Now still works by the
// last measurement, while that is good.
func (c *Clock) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.dropConn()
}

// good reports whether m may be used at now.
func (m *measurement) good(now instant, age time.Duration) bool {
	mono := now.mono - m.at.mono
	step := (now.wall - m.at.wall) - mono
	return mono >= 0 && mono <= int64(age) && step <= int64(maxStep) && step >= -int64(maxStep)
}

// serverTime is the server's time at now, in µs.
func (m *measurement) serverTime(now instant) int64 {
	return m.server + (now.mono-m.at.mono)/int64(time.Microsecond)
}

// remeasure measures the time. Callers that ask meanwhile share the measurement. It goes on
// when the caller that began it gives up.
func (c *Clock) remeasure(ctx context.Context) (*measurement, error) {
	result := c.flight.DoChan("", func() (any, error) {
		// A caller may have looked just before the last measurement ended, and come just after
		// it. It needs no other.
		if m, now := c.current.Load(), c.local(); m != nil && m.good(now, sharedFor) {
			return m, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(c.Within, defaultWithin))
		defer cancel()
		m, err := c.measure(ctx)
		if err == nil && m.width > int64(cmp.Or(c.Width, defaultWidth)) {
			err = fmt.Errorf("the round trip took %s", time.Duration(m.width))
		}
		if err == nil && !m.good(c.local(), maxAge) {
			err = errors.New("the local clock moved during the measurement")
		}
		if err != nil {
			c.failed.Store(&failure{mono: c.local().mono, err: err})
			return nil, fmt.Errorf("%w: %w", ErrClockUnsure, err)
		}
		used, err := c.judge(&m)
		if err != nil {
			c.failed.Store(&failure{mono: c.local().mono, err: err})
			return nil, fmt.Errorf("%w: %w", ErrClockUnsure, err)
		}
		c.current.Store(used)
		c.failed.Store(nil)
		return used, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*measurement), nil
	}
}

// judge returns what is to be used after a measurement: that itself or, where it shows a step that
// is not confirmed, the last trusted one, carried on by the monotonic clock. So hits go on meanwhile.
// A measurement of more than a minute ago is not carried on.
func (c *Clock) judge(m *measurement) (*measurement, error) {
	step := int64(0) // µs
	if c.trusted != nil {
		step = m.server - c.trusted.serverTime(m.at)
	}
	same := c.doubted != nil && within(m.server-c.doubted.serverTime(m.at), sameStep)
	switch {
	case within(step, maxJump):
	case same && m.at.mono-c.doubted.at.mono >= int64(confirmAfter):
		c.steps.Add(1)
		c.tellStep(m, time.Duration(step)*time.Microsecond)
	default:
		if !same {
			c.doubted = m
		}
		select {
		case c.doubts <- struct{}{}:
		default:
		}
		if m.at.mono-c.trusted.at.mono > int64(maxEstimateAge) {
			return nil, errors.New("the database's clock has stepped, and no second measurement has confirmed it yet")
		}
		return &measurement{at: m.at, server: c.trusted.serverTime(m.at), width: c.trusted.width}, nil
	}
	c.trusted, c.doubted = m, nil
	return m, nil
}

// tellStep logs a confirmed step. The machine's own clock tells who was set: the offset was near 0
// before, or is so now.
func (c *Clock) tellStep(m *measurement, step time.Duration) {
	offset := time.UnixMicro(m.server).Sub(time.Unix(0, m.at.wall))
	what := "the database's clock has stepped back: counters that were charged before are ahead of it, and their limits stand still until it catches up; `quotad repair clock` brings them back"
	if step > 0 {
		what = "the database's clock has stepped forward: windows and billing periods end by it; if it is set back, `quotad repair clock` brings back the counters that are ahead then"
	}
	c.log.Warn(what, "step_seconds", step.Seconds(), "ahead_of_this_machine_seconds", offset.Seconds())
}

// Sleep waits for d and reports false when ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
