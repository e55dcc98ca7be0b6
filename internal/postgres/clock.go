package postgres

import (
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
	measureLimit   = 2 * time.Second        // one measurement, connecting included
	measureTries   = 5                      // round trips at most; the narrowest counts
	narrowEnough   = 2 * time.Millisecond   // no further try needed
	maxWidth       = 100 * time.Millisecond // a wider round trip is too inexact
	maxAge         = 15 * time.Second       // how old a measurement Now uses
	maxEstimateAge = 60 * time.Second       // how old a measurement Estimate uses
	// maxStep is how far the wall clock may move against the monotonic one before a
	// measurement is dropped. After a suspend or a migration of the machine the monotonic
	// clock has lost time.
	maxStep = 50 * time.Millisecond
	// failPause is how long after a failed measurement Now fails at once, so
	// that an outage does not become a queue of attempts.
	failPause = 100 * time.Millisecond
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
	url     string
	log     *slog.Logger
	local   func() instant                             // the machine's clocks
	measure func(context.Context) (measurement, error) // asks the server

	current atomic.Pointer[measurement]
	failed  atomic.Pointer[failure]
	flight  singleflight.Group

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
	c := &Clock{url: databaseURL, log: log}
	c.local = func() instant {
		now := time.Now() // one call reads both clocks
		return instant{mono: int64(now.Sub(base)), wall: now.UnixNano()}
	}
	c.measure = c.measureServer
	return c
}

// Run measures every few seconds until ctx ends. Failures are logged when they
// begin and when they end; Now reports them meanwhile.
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
		if !Sleep(ctx, pause) {
			return
		}
	}
}

// Now returns the server's time in µs since the Unix epoch. While the last measurement is good
// it takes no lock and allocates nothing. Otherwise it measures first, for two seconds at
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
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), measureLimit)
		defer cancel()
		m, err := c.measure(ctx)
		if err == nil && m.width > int64(maxWidth) {
			err = fmt.Errorf("the round trip took %s", time.Duration(m.width))
		}
		if err == nil && !m.good(c.local(), maxAge) {
			err = errors.New("the local clock moved during the measurement")
		}
		if err != nil {
			c.failed.Store(&failure{mono: c.local().mono, err: err})
			return nil, fmt.Errorf("%w: %w", ErrClockUnsure, err)
		}
		c.current.Store(&m)
		c.failed.Store(nil)
		return &m, nil
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
