package faults

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is one connection through a proxy: the client's and the one to the server.
type link struct {
	p      *proxy
	client net.Conn
	mute   atomic.Bool // it swallows all that is said

	mu     sync.Mutex
	server net.Conn // nil until dialed
	gone   bool     // cut, or about to be
	asking bool     // the client spoke last
	blow   blow     // what befalls this exchange
	spared int      // exchanges that nothing befalls yet
	said   []byte   // the last bytes of the client's
	tail   []byte   // the last bytes of an answer that is swallowed
}

// run dials the server and copies both ways until one side ends or the link is cut.
func (l *link) run() {
	defer l.p.remove(l)
	defer l.cut()
	to := l.p.server.Load()
	ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
	defer cancel()
	server, err := new(net.Dialer).DialContext(ctx, to.network, to.at)
	if err != nil || !l.connect(server) {
		return
	}
	var copying sync.WaitGroup
	copying.Go(func() { l.copy(l.client, l.ask) })
	l.copy(server, l.answer)
	copying.Wait()
}

// connect keeps the connection to the server, unless the link was cut meanwhile.
func (l *link) connect(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		_ = server.Close()
		return false
	}
	l.server = server
	return true
}

// cut ends both connections.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// copy hands what one side says to pass, until that is false or nothing more comes; then
// the link ends.
func (l *link) copy(from net.Conn, pass func([]byte) bool) {
	defer l.cut()
	buffer := make([]byte, chunk)
	for {
		_ = from.SetReadDeadline(time.Now().Add(idleLimit))
		n, err := from.Read(buffer)
		if n > 0 && !pass(buffer[:n]) || err != nil {
			return
		}
	}
}

// swallows reports whether nothing passes the link any more.
func (l *link) swallows() bool {
	if l.p.silent.Load() {
		l.mute.Store(true)
	}
	return l.mute.Load()
}

// ask passes on what the client says. False: the link is to be cut.
func (l *link) ask(b []byte) bool {
	if l.swallows() {
		return true
	}
	l.p.statements.learn(b)
	if t := l.p.trap.Load(); t != nil {
		t.asks(l, b)
	}
	switch blow := l.begin(b); blow.fault {
	case cutBefore:
		return l.end(blow.fault)
	case cutWithin:
		return l.write(l.server, b[:blow.share(len(b))]) && l.end(blow.fault)
	case cutUnderWay:
		if !l.write(l.server, b) {
			return false
		}
		l.p.wait(blow.pause)
		return l.end(blow.fault)
	case stall:
		l.p.happened(stall)
		l.p.wait(blow.pause)
	}
	return l.write(l.server, b)
}

// begin returns what befalls these bytes of the client's: the dice say it at the start of
// an exchange, once. An answer that is to be lost stays to be lost until there is one that
// tells of the deed.
func (l *link) begin(b []byte) blow {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = keepLast(l.said, b)
	if l.asking {
		return blow{}
	}
	l.asking = true
	if l.blow.fault == cutUnanswered {
		return l.blow
	}
	l.blow = blow{}
	if l.spared--; l.spared < 0 {
		l.blow = l.p.dice.roll()
	}
	return l.blow
}

// answer passes on what the server says. False: the link is to be cut.
func (l *link) answer(b []byte) bool {
	if l.swallows() {
		return true
	}
	if t := l.p.trap.Load(); t != nil {
		t.answers(l)
	}
	switch blow := l.answered(); blow.fault {
	case cutUnanswered:
		if l.tail = keepLast(l.tail, b); !l.p.protocol.answered(l.tail) {
			return true // the rest of it is swallowed too
		}
		return l.end(blow.fault)
	case cutUnderWay:
		return true // it came within the pause, and is lost
	case cutWithinAnswer:
		return l.write(l.client, b[:blow.share(len(b))]) && l.end(blow.fault)
	}
	return l.write(l.client, b)
}

// answered notes that the server speaks, and returns what befalls its answer.
func (l *link) answered() blow {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := l.asking
	if asked && l.blow.fault == cutUnanswered && l.p.protocol.final(l.said) {
		return l.blow // until all of it has come
	}
	l.asking = false // what the client says next is a new exchange
	if !asked || l.blow.fault == cutUnanswered {
		return blow{}
	}
	return l.blow
}

// end counts a fault that cuts the link.
func (l *link) end(f fault) bool {
	l.mu.Lock()
	gone := l.gone
	l.gone = true
	l.mu.Unlock()
	if !gone {
		l.p.happened(f)
	}
	return false
}

func (l *link) write(to net.Conn, b []byte) bool {
	_ = to.SetWriteDeadline(time.Now().Add(idleLimit))
	_, err := to.Write(b)
	return err == nil
}
