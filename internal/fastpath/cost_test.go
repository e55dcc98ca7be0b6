package fastpath

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// costs is a kept-alive connection to a handler that does as little as it can.
type costs struct {
	conn     net.Conn
	requests [2][]byte // that differ in a varying header
	answer   []byte
	buffer   []byte
	asked    int
}

var plainText = []string{"text/plain"}

func newCosts(t testing.TB, fast bool) *costs {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = plainText
		var b [100]byte
		n, _ := r.Body.Read(b[:])
		_, _ = w.Write(b[:n])
	})
	server := &Server{Server: testServer(handler)}
	server.WriteTimeout, server.ReadTimeout, server.IdleTimeout = time.Minute, time.Minute, time.Minute
	if fast {
		server, listener = New(server.Server, testOptions()), Listener(listener)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	nc, err := net.Dial("tcp", listener.Addr().String())
	check(t, err)
	check(t, nc.SetDeadline(time.Now().Add(time.Minute)))
	t.Cleanup(func() {
		_ = nc.Close()
		_ = server.Close()
		serverEnded(t, ended)
	})
	c := &costs{conn: nc, buffer: make([]byte, 4096)}
	for i, key := range []string{"0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331b7ad6b7169203331"} {
		c.requests[i] = []byte(post(`{"customer":"a","metric":"m"}`, "User-Agent: Go-http-client/1.1",
			"Authorization: Bearer 0123456789", "Content-Type: application/json", "Accept-Encoding: gzip", "Idempotency-Key: "+key))
	}
	_, err = nc.Write(c.requests[0])
	check(t, err)
	n, err := nc.Read(c.buffer)
	check(t, err)
	c.answer = append(c.answer, c.buffer[:n]...)
	return c
}

func (c *costs) ask(t testing.TB) {
	c.asked++
	if _, err := c.conn.Write(c.requests[c.asked%2]); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c.conn, c.buffer[:len(c.answer)]); err != nil {
		t.Fatal(err)
	}
}

// TestAllocations keeps what the fast path is for: it allocates next to nothing.
func TestAllocations(t *testing.T) {
	fast, plain := newCosts(t, true), newCosts(t, false)
	got := testing.AllocsPerRun(500, func() { fast.ask(t) })
	usual := testing.AllocsPerRun(500, func() { plain.ask(t) })
	t.Logf("%v allocations for each request, and %v without the fast path", got, usual)
	if got > maxAllocations {
		t.Errorf("%v allocations for each request", got)
	}
	if usual < 2*maxAllocations {
		t.Errorf("net/http makes only %v", usual)
	}
}

func BenchmarkRequest(b *testing.B) {
	for name, fast := range map[string]bool{"fast": true, "plain": false} {
		b.Run(name, func(b *testing.B) {
			c := newCosts(b, fast)
			b.ReportAllocs()
			for b.Loop() {
				c.ask(b)
			}
		})
	}
}
