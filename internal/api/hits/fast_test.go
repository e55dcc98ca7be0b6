package hits

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
	"quotad/internal/testkit"
)

// A client that goes away while its hit waits is noticed on the fast path, too, where
// nobody reads meanwhile.
func TestClientOfAFastHitGoesAway(t *testing.T) {
	t.Parallel()
	w := newWaits(time.Hour)
	w.every = time.Millisecond
	fast, why := make(chan struct{}), make(chan error, 1)
	server := fastpath.New(&http.Server{
		ReadHeaderTimeout: testkit.Patience, ReadTimeout: testkit.Patience, WriteTimeout: testkit.Patience,
		IdleTimeout: testkit.Patience, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if _, netHTTP := rw.(http.Flusher); netHTTP {
				return
			}
			d := w.until(r.Context())
			defer d.end()
			d.Done()
			close(fast)
			select {
			case <-d.Done():
				why <- d.Err()
			case <-time.After(testkit.Patience):
				why <- errors.New("not noticed in time")
			}
		}),
	}, fastpath.Options{Serves: func(*http.Request) bool { return true }, Wall: time.Now})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	go func() { _ = server.Serve(fastpath.Listener(listener)) }()
	t.Cleanup(func() { check(t, server.Close()) })
	client, err := net.Dial("tcp", listener.Addr().String())
	check(t, err)
	defer client.Close()
	check(t, client.SetDeadline(time.Now().Add(testkit.Patience)))
	// The first is net/http's, and so is each that begins to come before net/http is done
	// with the one before it.
	answers := make(chan error)
	go func() {
		defer close(answers)
		for in := bufio.NewReader(client); ; {
			response, err := http.ReadResponse(in, nil)
			if err != nil {
				return // closed below
			}
			answers <- response.Body.Close()
		}
	}()
	for asking := true; asking; {
		_, err := fmt.Fprintf(client, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", Pattern)
		check(t, err)
		select {
		case <-fast:
			asking = false
		case err, open := <-answers:
			if err != nil || !open {
				t.Fatalf("none was served fast: %v", err)
			}
		}
	}
	check(t, client.Close())
	if err := <-why; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}
