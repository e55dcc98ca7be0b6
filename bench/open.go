package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// openRun is an open loop of load: requests are meant to start at fixed instants, whether
// or not earlier ones have been answered, and a request's latency counts from the instant
// at which it was meant to start. So a server that stalls is charged with all that should
// have been sent meanwhile (no coordinated omission).
//
// One thread sends and receives, on sockets that do not wait, and looks at them every
// tick: latencies are some tenths of a millisecond too long, of whatever is measured.
type openRun struct {
	template template
	rate     float64 // requests a second
	conns    int     // at most; when all are busy the next request waits, and its time runs
	took     time.Duration
	seed     uint64
	failing  bool // what is asked for is refused

	began    time.Time
	total    int // requests of the run
	started  int
	answered int
	inTime   int // of those, when the run ended, or a moment later
	wrong    int // of those, of another kind
	all      []*openConn
	idle     []*openConn
	hist     *hdrhistogram.Histogram
	choose   func() int
	request  []byte
}

// openConn is a connection of an openRun.
type openConn struct {
	*socket
	busy  bool
	meant time.Duration // from the beginning, of the request under way
}

const (
	// tick is how long the thread sleeps at least. The kernel adds some 50 µs. Shorter ones
	// measure themselves: with 50 µs, and before other threads, it took a third of a
	// processor and interrupted the server 10,000 times a second.
	tick = 250 * time.Microsecond
	// openGC is how much the heap may grow, in percent, before garbage is collected.
	openGC = 2000
	// openSlack is how long answers may take after the end of a run.
	openSlack = 10 * time.Second
)

// Bounds of what can be measured, µs, and the precision of it in digits.
const (
	leastLatency, mostLatency = 1, int64(time.Minute / time.Microsecond)
	latencyDigits             = 3
)

// inTimeShare is the share of requests that must be answered until a moment after the end
// of a run, or the rate was not the one that was asked for.
const (
	inTimeShare = 0.98
	moment      = 100 * time.Millisecond
)

var errRate = errors.New("the rate was not achieved")

// run sends the load to an address and returns its latencies in µs.
func (o *openRun) run(ctx context.Context, address string) (*hdrhistogram.Histogram, error) {
	o.total = int(o.rate * o.took.Seconds())
	o.hist = hdrhistogram.New(leastLatency, mostLatency, latencyDigits)
	o.choose = o.template.chooser(o.seed)
	defer func() {
		for _, c := range o.all {
			_ = c.close() // nothing is under way on it that matters
		}
	}()
	for range o.conns {
		s, err := openSocket(address)
		if err != nil {
			return nil, err
		}
		o.all = append(o.all, &openConn{socket: s})
	}
	w, err := newWatch(o.all)
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.close() }() // it has told all that it knew
	if err := o.greet(ctx, w); err != nil {
		return nil, err
	}
	// This program's own garbage is not what is measured.
	defer debug.SetGCPercent(debug.SetGCPercent(openGC))
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // it sleeps by itself
		defer runtime.UnlockOSThread()
		o.began = time.Now()
		ended <- o.loop(ctx, w)
	}()
	if err := <-ended; err != nil {
		return nil, err
	}
	return o.hist, o.verdict()
}

// greet has a request answered on each connection. What servers do for new connections is not
// what is measured: here all come at once, more than one of a hundred requests of a run.
func (o *openRun) greet(ctx context.Context, w *watch) error {
	for i, c := range o.all {
		c.busy = true
		o.request = o.template.append(o.request[:0], o.choose(), o.total+i+1)
		if err := c.send(o.request); err != nil {
			return fmt.Errorf("send a first request: %w", err)
		}
	}
	for began := time.Now(); len(o.idle) < len(o.all); sleep(tick) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Since(began) > openSlack {
			return fmt.Errorf("%w: of %d first requests only %d were answered", errRate, len(o.all), len(o.idle))
		}
		err := o.receive(w, func(c *openConn, _ int) { o.free(c) })
		if err != nil {
			return err
		}
	}
	return nil
}

// loop starts each request at its instant, and takes the answers.
func (o *openRun) loop(ctx context.Context, w *watch) error {
	for o.answered < o.total {
		now := time.Since(o.began)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if now > o.took+openSlack {
			return fmt.Errorf("%w: %d of %d requests at %.0f a second were not answered at all", errRate, o.total-o.answered, o.total, o.rate)
		}
		if err := o.send(now); err != nil {
			return err
		}
		if err := o.receive(w, o.take); err != nil {
			return err
		}
		wait := tick
		if len(o.idle) == len(o.all) { // nothing to wait for but the next one's instant
			wait = max(o.meant(o.started)-time.Since(o.began), tick)
		}
		sleep(wait)
	}
	return nil
}

// meant is the instant at which a request is to start, from the beginning.
func (o *openRun) meant(i int) time.Duration {
	return time.Duration(float64(i) / o.rate * float64(time.Second))
}

// send starts the requests that are due, while there are connections.
func (o *openRun) send(now time.Duration) error {
	for o.started < o.total && len(o.idle) > 0 && o.meant(o.started) <= now {
		c := o.idle[0] // in turn: servers close those on which nothing ever comes
		o.idle = append(o.idle[:0], o.idle[1:]...)
		c.busy, c.meant = true, o.meant(o.started)
		o.started++
		o.request = o.template.append(o.request[:0], o.choose(), o.started)
		if err := c.send(o.request); err != nil {
			return fmt.Errorf("send a request: %w", err)
		}
	}
	return nil
}

// receive hands out the answers that are there.
func (o *openRun) receive(w *watch, take func(c *openConn, status int)) error {
	list, err := w.ready(o.all)
	if err != nil {
		return err
	}
	for _, i := range list {
		c := o.all[i]
		status, err := c.receive()
		if err != nil {
			return fmt.Errorf("read an answer: %w", err)
		}
		if status != 0 {
			take(c, status)
		}
	}
	return nil
}

// take counts an answer.
func (o *openRun) take(c *openConn, status int) {
	now := time.Since(o.began)
	latency := min(max((now-c.meant).Microseconds(), leastLatency), mostLatency)
	_ = o.hist.RecordValue(latency) // it is within the bounds
	o.answered++
	if (status >= 400) != o.failing {
		o.wrong++
	}
	if now <= o.took+moment {
		o.inTime++
	}
	o.free(c)
}

// free makes a connection one of those that nothing is under way on.
func (o *openRun) free(c *openConn) {
	c.busy = false
	o.idle = append(o.idle, c)
}

// verdict says whether the run was what it should be.
func (o *openRun) verdict() error {
	total := float64(o.total)
	switch {
	case float64(o.wrong) > few*total:
		return fmt.Errorf("%w: %d of %d are of another kind", errAnswers, o.wrong, o.total)
	case float64(o.inTime) < inTimeShare*total:
		return fmt.Errorf("%w: of %d requests at %.0f a second only %d were answered in time", errRate, o.total, o.rate, o.inTime)
	}
	return nil
}

// A socket is a connection that Go's runtime does not know of, so that it wakes nobody.
// Reading and writing never wait.
type socket struct {
	fd int
	in []byte
	n  int // of in
}

// openSocket connects to an address such as 127.0.0.1:8080.
func openSocket(address string) (*socket, error) {
	to, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return nil, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	s := &socket{fd: fd, in: make([]byte, maxAnswer)}
	syscall.CloseOnExec(fd)
	err = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	if err == nil {
		err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())})
	}
	if err == nil {
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", address, err), s.close())
	}
	return s, nil
}

func (s *socket) close() error { return syscall.Close(s.fd) }

var errCutOff = errors.New("the connection was closed")

// send writes a request, for which an idle connection always has room.
func (s *socket) send(request []byte) error {
	n, err := syscall.Write(s.fd, request)
	if err == nil && n < len(request) {
		err = errors.New("no room for a request")
	}
	return err
}

// receive reads what is there; status is 0 until an answer is whole.
func (s *socket) receive() (status int, err error) {
	more, err := syscall.Read(s.fd, s.in[s.n:])
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return 0, nil
	case err != nil:
		return 0, err
	case more == 0:
		return 0, errCutOff
	}
	s.n += more
	status, _, size, err := parseAnswer(s.in[:s.n])
	if size > 0 {
		s.n = 0
	}
	return status, err
}
