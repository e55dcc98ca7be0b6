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
	defaultWithin  = 2 * time.Second        // one measurement, including the connection attempt
	measureTries   = 5                      // maximum number of round trips; the narrowest counts
	narrowEnough   = 2 * time.Millisecond   // no further try needed
	defaultWidth   = 100 * time.Millisecond // a wider round trip is too inexact
	maxAge         = 15 * time.Second       // maximum age of a measurement for Now
	maxEstimateAge = 60 * time.Second       // maximum age of a measurement for Estimate
	// maxStep is the maximum difference between the wall clock and the monotonic clock before a measurement is
	// dropped. After a suspend or a migration of the machine, the monotonic clock has lost time.
	maxStep = 50 * time.Millisecond
	// failPause is the time after a failed measurement during which Now fails at once, so that no queue of
	// attempts builds up in an outage.
	failPause = 100 * time.Millisecond
	// maxJump is the maximum movement of the server's clock against the monotonic clock that does not count as a
	// step. A step is applied when a second measurement, confirmAfter later, agrees with the first within
	// sameStep. A server that slews its clock at full speed moves it by a tenth of that time.
	maxJump      = time.Second
	confirmAfter = time.Second
	sameStep     = 250 * time.Millisecond
)

// sharedFor is the time for which a measurement is shared. During this time no caller starts another
// measurement.
const sharedFor = 100 * time.Millisecond

// ErrClockUnsure is returned while the database's time is not known well enough to charge by it.
var ErrClockUnsure = errors.New("the database's time is not known well enough")

// instant is one reading of the local clocks, in ns.
type instant struct {
	mono int64 // since the process started; never set back
	wall int64 // since the Unix epoch, by the machine's clock
}

// measurement relates the server's time to the local clocks.
type measurement struct {
	at     instant
	server int64 // µs since the Unix epoch, at the instant above
	width  int64 // round trip in ns; the error is at most half of it
}

// Clock provides PostgreSQL's time, which is the only clock of all nodes, without a statement for each call. It
// is safe for concurrent use.
type Clock struct {
	// Within limits a measurement, including the connection attempt; 0 means 2 s. Width limits the round trip of
	// a measurement, whose error is at most half of the width; 0 means 100 ms. Both must be set before the first
	// measurement.
	Within, Width time.Duration

	connect func(context.Context) (*pgx.Conn, error)
	log     *slog.Logger
	local   func() instant                             // the machine's clocks
	measure func(context.Context) (measurement, error) // queries the server

	current atomic.Pointer[measurement]
	failed  atomic.Pointer[failure]
	flight  singleflight.Group
	steps   atomic.Int64
	doubts  chan struct{} // wakes Run to confirm a step

	// The following fields belong to the running measurement.
	trusted *measurement // the last measurement that was applied unchanged
	doubted *measurement // a measurement with an unconfirmed step, or nil

	mu     sync.Mutex // guards conn and closed; locked during a measurement
	conn   *pgx.Conn
	closed bool
}

// failure is the last failed measurement.
type failure struct {
	mono int64
	err  error
}

// NewClock returns a clock for the database. It uses one separate connection, so that it never waits for a pool.
// The connection is opened when it is first needed, and Close closes it. NewClock starts nothing; Run repeats
// the measurements. log may be nil.
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

// Run measures the time every few seconds until ctx ends, and a second after a measurement that shows a step. It
// logs when measurements begin to fail and when they work again. Meanwhile Now returns the errors.
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

// rest waits for d, or for confirmAfter if a step must be confirmed. It returns false if ctx ended first.
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

// Now returns the server's time in µs since the Unix epoch. While the last measurement is valid, Now takes no
// lock and allocates nothing. Otherwise Now measures first, for at most Within, and concurrent callers share the
// measurement. If the measurement fails, the error is ErrClockUnsure or ctx's error.
func (c *Clock) Now(ctx context.Context) (us int64, err error) {
	now := c.local()
	if m := c.current.Load(); m != nil && m.good(now, maxAge) {
		return m.serverTime(now), nil
	}
	return c.nowMeasured(ctx, now)
}

// nowMeasured is the slow path of Now.
func (c *Clock) nowMeasured(ctx context.Context, now instant) (int64, error) {
	if f := c.failed.Load(); f != nil && now.mono-f.mono < int64(failPause) {
		return 0, fmt.Errorf("%w: %w", ErrClockUnsure, f.err)
	}
	m, err := c.remeasure(ctx)
	if err != nil {
		return 0, err
	}
	now = c.local()
	if !m.good(now, maxAge) { // the machine was suspended in between
		return 0, fmt.Errorf("%w: the local clock moved during the measurement", ErrClockUnsure)
	}
	return m.serverTime(now), nil
}

// Estimate returns the server's time by a measurement that is at most a minute old. It is for responses in an
// outage that charge nothing. It never waits. ok is false if there is no such measurement, or if the local clock
// moved.
func (c *Clock) Estimate() (us int64, ok bool) {
	now := c.local()
	m := c.current.Load()
	if m == nil || !m.good(now, maxEstimateAge) {
		return 0, false
	}
	return m.serverTime(now), true
}

// Quality returns the age of the current measurement and the width of its round trip. The error of the clock is
// at most half of the width. ok is false if there is no measurement.
func (c *Clock) Quality() (age, width time.Duration, ok bool) {
	m := c.current.Load()
	if m == nil {
		return 0, 0, false
	}
	return time.Duration(c.local().mono - m.at.mono), time.Duration(m.width), true
}

// Offset returns the time by which the server's clock, as used, is ahead of the machine's clock. The result is
// negative if the server's clock is behind. ok is false if there is no measurement.
func (c *Clock) Offset() (ahead time.Duration, ok bool) {
	m := c.current.Load()
	if m == nil {
		return 0, false
	}
	return time.UnixMicro(m.server).Sub(time.Unix(0, m.at.wall)), true
}

// Steps returns the number of confirmed steps of the server's clock.
func (c *Clock) Steps() int64 { return c.steps.Load() }

// Steady returns us, an instant that a statement read from the server's clock, µs. If us differs from Now by
// more than a step, the step is not confirmed yet, and Steady returns Now instead. While Now fails, Steady
// returns us without a comparison.
func (c *Clock) Steady(ctx context.Context, us int64) int64 {
	now, err := c.Now(ctx)
	if err != nil || within(us-now, maxJump) {
		return us
	}
	return now
}

// within reports whether a difference, µs, is at most d.
func within(us int64, d time.Duration) bool { return max(us, -us) <= d.Microseconds() }

// Close closes the clock's connection after the running measurement. Now still works as long as the last
// measurement is valid.
func (c *Clock) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.dropConn()
}

// good reports whether m is valid at now.
func (m *measurement) good(now instant, age time.Duration) bool {
	mono := now.mono - m.at.mono
	step := (now.wall - m.at.wall) - mono
	return mono >= 0 && mono <= int64(age) && step <= int64(maxStep) && step >= -int64(maxStep)
}

// serverTime returns the server's time at now, in µs.
func (m *measurement) serverTime(now instant) int64 {
	return m.server + (now.mono-m.at.mono)/int64(time.Microsecond)
}

// remeasure measures the time. Concurrent callers share the measurement, which continues even if the caller that
// began it gives up.
func (c *Clock) remeasure(ctx context.Context) (*measurement, error) {
	result := c.flight.DoChan("", func() (any, error) {
		// A caller may have checked just before the last measurement ended and arrive here just after it. Such a
		// caller needs no new measurement.
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

// judge returns the measurement that is used after m. The result is m itself unless m shows an unconfirmed step.
// In that case judge extends the last trusted measurement by the monotonic clock, so that hits continue
// meanwhile. judge never extends a measurement that is older than a minute.
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

// tellStep logs a confirmed step. The offset to the machine's own clock shows which clock was set: the offset
// was near 0 before the step, or is near 0 after it.
func (c *Clock) tellStep(m *measurement, step time.Duration) {
	offset := time.UnixMicro(m.server).Sub(time.Unix(0, m.at.wall))
	what := "the database's clock has stepped back: counters that were charged before are ahead of it, and their limits stand still until it catches up; `quotad repair clock` brings them back"
	if step > 0 {
		what = "the database's clock has stepped forward: windows and billing periods end by it; if it is set back, `quotad repair clock` brings back the counters that are ahead then"
	}
	c.log.Warn(what, "step_seconds", step.Seconds(), "ahead_of_this_machine_seconds", offset.Seconds())
}

// Sleep waits for d. It returns false if ctx ended first.
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
