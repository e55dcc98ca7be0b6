package fastpath

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// A meter is a listener whose connections count what is read of them.
type meter struct {
	net.Listener
	last atomic.Pointer[metered]
}

type metered struct {
	*net.TCPConn
	read   atomic.Int64 // bytes
	begun  atomic.Int64 // as many were read when the last Read began
	closed atomic.Bool

	readBy, writeBy atomic.Pointer[time.Time] // the deadlines
}

func (m *meter) Accept() (net.Conn, error) {
	nc, err := m.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &metered{TCPConn: nc.(*net.TCPConn)}
	m.last.Store(c)
	return c, nil
}

func (c *metered) Read(p []byte) (int, error) {
	c.begun.Store(c.read.Load())
	n, err := c.TCPConn.Read(p)
	c.read.Add(int64(n))
	return n, err
}

func (c *metered) SetReadDeadline(t time.Time) error {
	c.readBy.Store(&t)
	return c.TCPConn.SetReadDeadline(t)
}

func (c *metered) SetWriteDeadline(t time.Time) error {
	c.writeBy.Store(&t)
	return c.TCPConn.SetWriteDeadline(t)
}

func (c *metered) Close() error {
	c.closed.Store(true)
	return c.TCPConn.Close()
}

// TestWire tells the stories over TCP, where what is sent comes in its own time.
func TestWire(t *testing.T) {
	var sides [2]*meter
	for i := range sides {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
		sides[i] = &meter{Listener: listener}
		server, used := &Server{Server: testServer(&echo{})}, net.Listener(sides[i])
		if i == 1 {
			server, used = New(server.Server, testOptions()), Listener(used)
		} else {
			used = strictListener{used}
		}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(used) }()
		t.Cleanup(func() {
			_ = server.Close()
			serverEnded(t, ended)
		})
	}
	for _, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			want, whole := sides[0].tell(t, s.sent)
			got, all := sides[1].tell(t, s.sent)
			if !whole || !all { // a reset took the end of what was answered
				n := min(len(want), len(got))
				want, got = want[:n], got[:n]
			}
			if got != want {
				t.Errorf("sent %+q:\ngot  %q\nwant %q", s.sent, got, want)
			}
		})
	}
}

// tell sends each segment when the ones before were read, and returns what is answered.
func (m *meter) tell(t *testing.T, segments []segment) (answers string, whole bool) {
	t.Helper()
	m.last.Store(nil)
	nc, err := net.Dial("tcp", m.Addr().String())
	check(t, err)
	defer func() { _ = nc.Close() }()
	check(t, nc.SetDeadline(time.Now().Add(patient)))
	answered := make(chan string, 1)
	go func() {
		all, err := io.ReadAll(nc)
		whole = err == nil
		answered <- undated(all)
	}()
	sent := int64(0)
	for _, s := range segments {
		n, _ := io.WriteString(nc, s.text)
		sent += int64(n)
		poll(t, "what was sent is not read", func() bool {
			c := m.last.Load()
			return c != nil && (c.closed.Load() || c.read.Load() >= sent)
		})
	}
	_ = nc.(*net.TCPConn).CloseWrite()
	return <-answered, whole
}

// TestHalfClosed lets net/http half-close a connection, as it does when it will read no more
// of a request, so that the client still gets the answer.
func TestHalfClosed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer func() { _ = listener.Close() }()
	client, err := net.Dial("tcp", listener.Addr().String())
	check(t, err)
	defer func() { _ = client.Close() }()
	nc, err := Listener(listener).Accept()
	check(t, err)
	defer func() { _ = nc.Close() }()
	half, ok := nc.(interface{ CloseWrite() error })
	if !ok {
		t.Fatalf("%T cannot be half-closed", nc)
	}
	check(t, half.CloseWrite())
	check(t, client.SetDeadline(time.Now().Add(patient)))
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
