package postgres

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// machine is a machine whose clocks the test turns, and a server whose clock
// is 1,000 s ahead of the machine's monotonic one.
type machine struct {
	mu       sync.Mutex
	now      instant
	step     time.Duration // of the server's clock
	width    time.Duration
	err      error
	measured atomic.Int64
}

func (m *machine) pass(mono, wall time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.mono += int64(mono)
	m.now.wall += int64(wall)
}

func (m *machine) set(width time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.width, m.err = width, err
}

func (m *machine) local() instant {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *machine) measure(context.Context) (measurement, error) {
	m.measured.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	return measurement{at: m.now, server: m.now.mono/1000 + 1_000_000_000 + m.step.Microseconds(), width: int64(m.width)}, m.err
}

// clock is a Clock on m.
func (m *machine) clock() *Clock {
	c := NewClock("", quiet)
	c.local, c.measure = m.local, m.measure
	return c
}

func (m *machine) setServer(step time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.step = step
}

// check calls Now and says how often the server had to be asked for it.
func check(t *testing.T, m *machine, c *Clock, asked int64) {
	t.Helper()
	before := m.measured.Load()
	us, err := c.Now(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if want := m.local().mono/1000 + 1_000_000_000; us != want {
		t.Errorf("Now = %d, want %d", us, want)
	}
	if got := m.measured.Load() - before; got != asked {
		t.Errorf("the server was asked %d times, want %d", got, asked)
	}
}

func TestClockMeasuresOnlyWhenItMust(t *testing.T) {
	m := &machine{}
	c := m.clock()
	check(t, m, c, 1)
	m.pass(14*time.Second, 14*time.Second)
	check(t, m, c, 0)
	m.pass(2*time.Second, 2*time.Second) // old
	check(t, m, c, 1)
	m.pass(time.Second, time.Second+49*time.Millisecond) // slewed
	check(t, m, c, 0)
	m.pass(time.Second, time.Second+2*time.Millisecond) // too far in all
	check(t, m, c, 1)
	m.pass(time.Second, 10*time.Minute) // suspended
	check(t, m, c, 1)
	m.pass(time.Second, -time.Hour) // set back
	check(t, m, c, 1)
}

// A step counts from the second measurement on that shows it, a second or more after the first.
func TestClockConfirmsAStep(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour, 1001 * time.Millisecond, -1001 * time.Millisecond, 24 * 365 * time.Hour} {
		m, further := &machine{}, 2*sameStep
		if step < 0 {
			further = -further
		}
		var said bytes.Buffer
		c := m.clock()
		c.log = slog.New(slog.NewTextHandler(&said, nil))
		is := func(what string, want time.Duration, steps int64) {
			t.Helper()
			us, err := c.Now(t.Context())
			if got := time.Duration(us-m.local().mono/1000-1_000_000_000) * time.Microsecond; err != nil || got != want || c.Steps() != steps {
				t.Fatalf("%s, %s: the clock is off by %s, %d steps, %v; want %s, %d", step, what, got, c.Steps(), err, want, steps)
			}
			if said.Len() > 0 != (steps > 0) || strings.Count(said.String(), "level=WARN") != int(steps) {
				t.Fatalf("%s, %s: the log has %q", step, what, said.String())
			}
		}
		measure := func(after time.Duration) {
			t.Helper()
			m.pass(after, after)
			if _, err := c.remeasure(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		measure(0)
		m.setServer(step)
		measure(5 * time.Second)
		is("seen once", 0, 0)
		measure(900 * time.Millisecond)
		is("seen again too soon", 0, 0)
		m.setServer(0)
		measure(200 * time.Millisecond)
		is("gone after a second", 0, 0)
		m.setServer(step)
		measure(time.Second)
		is("seen again, for the first time", 0, 0)
		m.setServer(step + further)
		measure(time.Second)
		is("another step than a second ago", 0, 0)
		measure(time.Second)
		is("confirmed", step+further, 1)
		if offset, ok := c.Offset(); !ok || offset != 1000*time.Second+step+further {
			t.Errorf("%s: the offset is %s", step, offset)
		}
		if !strings.Contains(said.String(), "`quotad repair clock`") {
			t.Errorf("%s: the log has %q", step, said.String())
		}
	}
	// What is a second at most is no step.
	m := &machine{}
	c := m.clock()
	check(t, m, c, 1)
	m.setServer(time.Second)
	m.pass(5*time.Second, 5*time.Second)
	if _, err := c.remeasure(t.Context()); err != nil || c.current.Load().server != 1_006_000_000 || c.Steps() != 0 {
		t.Errorf("%+v, %v", c.current.Load(), err)
	}
}

// While the server's clock shows another time at each measurement, the node goes on by its own for a
// minute, and then knows no time.
func TestClockOfAServerThatCannotBeTrusted(t *testing.T) {
	m := &machine{}
	c := m.clock()
	check(t, m, c, 1)
	for range 60 {
		m.setServer(m.step + time.Minute)
		m.pass(time.Second, time.Second)
		us, err := c.remeasure(t.Context())
		if err != nil || us.server != m.local().mono/1000+1_000_000_000 {
			t.Fatalf("%+v, %v", us, err)
		}
	}
	m.setServer(0)
	m.pass(time.Second, time.Second)
	if _, err := c.remeasure(t.Context()); err != nil {
		t.Fatal(err) // back where it was
	}
	m.setServer(time.Hour)
	m.pass(61*time.Second, 61*time.Second) // an outage
	if _, err := c.Now(t.Context()); !errors.Is(err, ErrClockUnsure) {
		t.Errorf("after an outage, a step that is not confirmed: %v", err)
	}
	m.pass(time.Second, time.Second)
	if us, err := c.Now(t.Context()); err != nil || us != m.local().mono/1000+1_000_000_000+time.Hour.Microseconds() {
		t.Errorf("confirmed: %d, %v", us, err)
	}
}

// What a statement read of the server's clock is held against the clock that hits go by.
func TestSteady(t *testing.T) {
	m := &machine{}
	c := m.clock()
	check(t, m, c, 1)
	now := m.local().mono/1000 + 1_000_000_000
	for read, want := range map[int64]int64{
		now: now, now + 1_000_000: now + 1_000_000, now - 1_000_000: now - 1_000_000, now + 1_000_001: now,
		now - 1_000_001: now,
	} {
		if got := c.Steady(t.Context(), read); got != want {
			t.Errorf("%d is %d, want %d", read-now, got-now, want-now)
		}
	}
}

func TestClockInAnOutage(t *testing.T) {
	m := &machine{}
	c := m.clock()
	if _, ok := c.Estimate(); ok {
		t.Error("an estimate out of nothing")
	}
	if _, _, ok := c.Quality(); ok {
		t.Error("a quality of nothing")
	}
	check(t, m, c, 1)
	outage := errors.New("no server")
	m.set(0, outage)
	m.pass(30*time.Second, 30*time.Second)
	_, err := c.Now(context.Background())
	if !errors.Is(err, ErrClockUnsure) || !errors.Is(err, outage) {
		t.Errorf("Now: %v", err)
	}
	if us, ok := c.Estimate(); !ok || us != 1_030_000_000 {
		t.Errorf("Estimate = %d, %v", us, ok)
	}
	// Not asked again at once, but soon.
	before := m.measured.Load()
	if _, err := c.Now(context.Background()); !errors.Is(err, ErrClockUnsure) || m.measured.Load() != before {
		t.Errorf("%v; asked %d times", err, m.measured.Load()-before)
	}
	m.pass(failPause, failPause)
	if _, err := c.Now(context.Background()); !errors.Is(err, ErrClockUnsure) || m.measured.Load() != before+1 {
		t.Errorf("%v; asked %d times", err, m.measured.Load()-before)
	}
	m.pass(0, time.Second) // the wall clock was set: not even an estimate
	if us, ok := c.Estimate(); ok {
		t.Errorf("Estimate = %d", us)
	}
	m.pass(0, -time.Second)
	m.pass(31*time.Second, 31*time.Second)
	if us, ok := c.Estimate(); ok {
		t.Errorf("Estimate = %d after a minute", us)
	}
	m.set(0, nil)
	check(t, m, c, 1)
}

func TestClockRefusesAWideMeasurement(t *testing.T) {
	m := &machine{}
	c := m.clock()
	m.set(defaultWidth+1, nil)
	if _, err := c.Now(context.Background()); !errors.Is(err, ErrClockUnsure) {
		t.Errorf("got %v", err)
	}
	m.pass(failPause, failPause)
	m.set(defaultWidth, nil)
	check(t, m, c, 1)
	if age, width, ok := c.Quality(); age != 0 || width != defaultWidth || !ok {
		t.Errorf("Quality = %v, %v, %v", age, width, ok)
	}
}

func TestClockCallersShareAMeasurement(t *testing.T) {
	m := &machine{}
	c := m.clock()
	begun, let := make(chan bool, 100), make(chan bool)
	c.measure = func(ctx context.Context) (measurement, error) {
		begun <- true
		<-let
		return m.measure(ctx)
	}
	// One gives up and leaves the measurement to the others.
	impatient, cancel := context.WithCancel(context.Background())
	gaveUp := make(chan error)
	go func() { _, err := c.Now(impatient); gaveUp <- err }()
	<-begun
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := c.Now(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	close(let)
	all.Wait()
	if n := m.measured.Load(); n != 1 {
		t.Errorf("measured %d times", n)
	}
}

func TestClockNowAllocatesNothing(t *testing.T) {
	c := NewClock("", quiet)
	c.measure = func(context.Context) (measurement, error) { return measurement{at: c.local()}, nil }
	ctx := context.Background()
	if _, err := c.Now(ctx); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() { _, _ = c.Now(ctx) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkClockNow(b *testing.B) {
	c := NewClock("", quiet)
	c.measure = func(context.Context) (measurement, error) { return measurement{at: c.local()}, nil }
	ctx := context.Background()
	for b.Loop() {
		if _, err := c.Now(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
