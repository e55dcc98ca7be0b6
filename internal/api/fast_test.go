package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"quotad/internal/fastpath"
)

// A client that goes away while its hit waits is noticed on the fast path, too, where
// nobody reads meanwhile.
func TestClientOfAFastHitGoesAway(t *testing.T) {
	w := newWaits(time.Hour)
	w.every = time.Millisecond
	waiting, fast, why := make(chan struct{}), false, make(chan error, 1)
	server := NewHTTPServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, netHTTP := rw.(http.Flusher)
		if fast = !netHTTP; !fast {
			return
		}
		d := w.until(r.Context())
		defer d.end()
		d.Done()
		close(waiting)
		select {
		case <-d.Done():
			why <- d.Err()
		case <-time.After(10 * time.Second):
			why <- errors.New("not noticed in time")
		}
	}), time.Now)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	go func() { _ = server.Serve(fastpath.Listener(listener)) }()
	t.Cleanup(func() { check(t, server.Close()) })
	client, err := net.Dial("tcp", listener.Addr().String())
	check(t, err)
	defer client.Close()
	check(t, client.SetDeadline(time.Now().Add(10*time.Second)))
	ask := func() {
		_, err := fmt.Fprintf(client, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", hitsPattern)
		check(t, err)
	}
	ask()
	first, err := http.ReadResponse(bufio.NewReader(client), nil)
	check(t, err)
	check(t, first.Body.Close())
	ask()
	select {
	case <-waiting:
	case <-time.After(10 * time.Second):
		t.Fatal("the second was not served fast")
	}
	check(t, client.Close())
	if err := <-why; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}
