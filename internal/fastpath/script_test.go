package fastpath

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A segment is what arrives at once.
type segment struct {
	text string
	// early: it arrives while the request before it is answered. Others arrive when the
	// server has nothing left to do.
	early bool
}

// A script is the server's end of a connection in memory, on which a client sends segments
// and then no more. Each Read gets of one segment, whatever the machine's load.
type script struct {
	mu       sync.Mutex
	changed  *sync.Cond
	segments []segment
	open     bool // the first of them has arrived
	out      bytes.Buffer
	past     bool // the deadline of reads
	closed   bool
	ended    chan struct{} // it was closed
	peeked   chan struct{} // net/http took a byte while it answered
}

func newScript(segments []segment) *script {
	s := &script{ended: make(chan struct{}), peeked: make(chan struct{})}
	s.changed = sync.NewCond(&s.mu)
	for _, segment := range segments {
		if segment.text != "" {
			s.segments = append(s.segments, segment)
		}
	}
	return s
}

// patience is how long a Read of one byte is taken for the one by which net/http notices,
// while a request is answered, that its client goes away. Others of one byte are rare.
const patience = 300 * time.Millisecond

func (s *script) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p) == 1 {
		defer time.AfterFunc(patience, s.arrive).Stop()
	} else {
		s.open = true
	}
	for {
		switch {
		case s.closed:
			return 0, net.ErrClosed
		case s.past:
			return 0, os.ErrDeadlineExceeded
		case len(s.segments) == 0 && s.open:
			s.notePeek(len(p))
			return 0, io.EOF
		case len(s.segments) > 0 && (s.open || s.segments[0].early):
			n := copy(p, s.segments[0].text)
			s.segments[0].text = s.segments[0].text[n:]
			if s.open = true; s.segments[0].text == "" {
				s.segments, s.open = s.segments[1:], false
			}
			s.notePeek(len(p))
			return n, nil
		}
		s.changed.Wait()
	}
}

// hasMore reports whether something has come that was not read.
func (s *script) hasMore() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.segments) > 0 && (s.open || s.segments[0].early)
}

func (s *script) arrive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = true
	s.changed.Broadcast()
}

func (s *script) notePeek(wanted int) {
	select {
	case <-s.peeked:
	default:
		if wanted == 1 {
			close(s.peeked)
		}
	}
}

func (s *script) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, net.ErrClosed
	}
	return s.out.Write(p)
}

func (s *script) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	s.closed = true
	close(s.ended)
	s.changed.Broadcast()
	return nil
}

// SetReadDeadline knows only of those that are over: nothing takes long here.
func (s *script) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past = !t.IsZero() && t.Before(time.Now())
	s.changed.Broadcast()
	return nil
}

func (s *script) SetWriteDeadline(time.Time) error { return nil }

func (s *script) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

func (s *script) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (s *script) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 99} }

// scripts is a listener whose connections are put into it.
type scripts struct {
	next chan net.Conn
	done chan struct{}
	once sync.Once
}

func newScripts() *scripts {
	return &scripts{next: make(chan net.Conn), done: make(chan struct{})}
}

func (l *scripts) Accept() (net.Conn, error) {
	select {
	case nc := <-l.next:
		return nc, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *scripts) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *scripts) Addr() net.Addr { return &net.TCPAddr{} }
