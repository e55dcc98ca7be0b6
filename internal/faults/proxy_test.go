package faults

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// maxLinks bounds the connections through a proxy; one more is closed at once.
	maxLinks = 512
	// dialLimit bounds the way from a proxy to its server.
	dialLimit = time.Minute
	// idleLimit is how long a connection may say nothing, either way, before it is closed.
	idleLimit = 5 * time.Minute
	// mostLinks is the share of the connections that are spared at their start.
	mostLinks = 0.8
	// chunk is how many bytes are passed on in one go.
	chunk = 32 << 10
)

// address is where a server listens.
type address struct{ network, at string }

// proxy passes connections on to one server, and breaks what the dice say. An exchange is
// what the client says until the server answers, and that answer: one request over HTTP,
// one pipeline to PostgreSQL.
type proxy struct {
	listener net.Listener
	server   atomic.Pointer[address]
	dice     *dice
	protocol protocol
	counts   [numFaults]atomic.Int64
	closing  chan struct{}
	running  sync.WaitGroup

	statements statements
	trap       atomic.Pointer[trap] // nil: there is none

	silent atomic.Bool // nothing passes, and no connection ends: see silence

	mu    sync.Mutex
	links map[*link]bool
}

// protocol is what a proxy must know to lose an answer after the deed, and not before it.
type protocol struct {
	// final says of what the client said last whether its answer tells of the deed.
	final func(tail []byte) bool
	// answered says of the last bytes of such an answer whether it is complete.
	answered func(tail []byte) bool
	// spared is how many exchanges nothing befalls at the start of most connections: while
	// a session is made, or few sessions would ever be.
	spared int
}

// overHTTP: quotad answers once what it says is committed.
var overHTTP = protocol{func([]byte) bool { return true }, func([]byte) bool { return true }, 0}

// toPostgres: what ends with a Sync is committed, and then answered with ReadyForQuery. A
// transaction may have other exchanges before. To make a session takes quotad about twenty:
// each of its statements is prepared.
var toPostgres = protocol{
	func(tail []byte) bool { return bytes.HasSuffix(tail, []byte("S\x00\x00\x00\x04")) },
	func(tail []byte) bool {
		return len(tail) >= 6 && string(tail[len(tail)-6:len(tail)-1]) == "Z\x00\x00\x00\x05"
	},
	20,
}

// lastBytes is how many of them a protocol is shown.
const lastBytes = 8

// keepLast returns the last bytes of what was said, with those said before.
func keepLast(tail, said []byte) []byte {
	tail = append(tail, said[max(0, len(said)-lastBytes):]...)
	return tail[max(0, len(tail)-lastBytes):]
}

// newProxy starts a proxy on a port of its own. It ends with the test.
func newProxy(t testing.TB, server address, speaks protocol, d *dice) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, dice: d, protocol: speaks, closing: make(chan struct{}), links: make(map[*link]bool)}
	p.to(server)
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// addr is where clients find the server.
func (p *proxy) addr() string { return p.listener.Addr().String() }

// silence has all connections go silent for good, and those that are made until it ends.
func (p *proxy) silence(begins bool) {
	p.silent.Store(begins)
	if !begins {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.mute.Store(true)
	}
}

// to has later connections go to another server.
func (p *proxy) to(server address) { p.server.Store(&server) }

func (p *proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // of this one connection
			p.wait(time.Millisecond)
			continue
		}
		l := &link{p: p, client: conn}
		if p.protocol.spared > 0 && p.dice.roll().part < mostLinks {
			l.spared = p.protocol.spared
		}
		if !p.add(l) {
			_ = conn.Close()
			continue
		}
		p.running.Go(l.run)
	}
}

// add remembers a link, unless there are too many or the proxy is closing.
func (p *proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closing:
		return false
	default:
	}
	if len(p.links) == maxLinks {
		return false
	}
	p.links[l] = true
	return true
}

func (p *proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// wait is a pause that ends early when the proxy does.
func (p *proxy) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.closing:
	}
}

// close cuts all connections, and returns when nothing of the proxy runs any more.
func (p *proxy) close() {
	p.mu.Lock()
	select {
	case <-p.closing:
	default:
		close(p.closing)
		_ = p.listener.Close()
		for l := range p.links {
			l.cut()
		}
	}
	p.mu.Unlock()
	p.running.Wait()
}

// count is how often a fault happened.
func (p *proxy) count(f fault) int64 { return p.counts[f].Load() }

func (p *proxy) happened(f fault) { p.counts[f].Add(1) }
