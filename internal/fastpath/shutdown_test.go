package fastpath

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// shutdown is n.Shutdown, which must end in time.
func (n *node) shutdown(t testing.TB, d time.Duration) error {
	t.Helper()
	return await(t, n.beginShutdown(t, d))
}

func (n *node) beginShutdown(t testing.TB, d time.Duration) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- n.Shutdown(within(t, d)) }()
	return ended
}

// sees waits until Shutdown has ended this idle connection, and so has looked at all others:
// it holds the lock meanwhile that this takes.
func (n *node) sees(idle *client) {
	idle.t.Helper()
	idle.ends()
	n.RegisterOnShutdown(func() {})
}

func await(t testing.TB, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(2 * patient):
		t.Fatal("it does not end")
		return nil
	}
}

// TestShutdown lets requests end that are served fast, and no others come.
func TestShutdown(t *testing.T) {
	n := startNode(t, nil)
	idle, never, busy := n.dial(t), n.dial(t), n.dial(t)
	idle.ask("fast")
	n.waits(t, busy)
	busy.send(post("behind it"))
	ended := n.beginShutdown(t, patient)
	n.sees(idle)
	never.ends()
	select {
	case err := <-ended:
		t.Fatalf("Shutdown did not wait: %v", err)
	case <-time.After(50 * time.Millisecond): // some rounds of its wait
	}
	if _, err := net.Dial("tcp", n.address); err == nil {
		t.Error("it still listens")
	}
	close(n.release)
	if response, body := busy.answer(); body != "wait" || !response.Close {
		t.Errorf("answered %q, close: %v", body, response.Close)
	}
	busy.ends()
	check(t, await(t, ended))
	if fast := n.fast.Load(); fast != 2 {
		t.Errorf("%d were served fast", fast)
	}
}

// TestShutdownIsPatient for as long as it may be.
func TestShutdownIsPatient(t *testing.T) {
	n := startNode(t, nil)
	c := n.dial(t)
	n.waits(t, c)
	if err := n.shutdown(t, 50*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	close(n.release)
	if _, body := c.answer(); body != "wait" {
		t.Errorf("answered %q", body)
	}
	check(t, n.shutdown(t, patient))
}

// TestShutdownWhileBusy ends many connections that are never idle for long. Every request
// that is answered is answered in whole.
func TestShutdownWhileBusy(t *testing.T) {
	n := startNode(t, nil)
	const clients = 8
	done := make(chan error, clients)
	for range clients {
		c := n.dial(t)
		go func() { done <- c.repeat() }()
	}
	poll(t, "none is served fast", func() bool { return n.fast.Load() > clients*5 })
	check(t, n.shutdown(t, patient))
	for range clients {
		check(t, await(t, done))
	}
}

// repeat sends requests until the connection is closed between two of them.
func (c *client) repeat() error {
	for {
		if _, err := io.WriteString(c, post("body")); err != nil {
			return nil // that is how it ends
		}
		if _, err := c.in.Peek(1); err != nil {
			return nil
		}
		response, err := http.ReadResponse(c.in, nil)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || response.Close {
			return err
		}
		if string(body) != "body" {
			return fmt.Errorf("answered %q", body)
		}
	}
}

// TestShutdownAwaitsBody does not cut off a request whose head has come, as net/http does not.
func TestShutdownAwaitsBody(t *testing.T) {
	n := startNode(t, nil)
	idle, c := n.dial(t), n.dial(t)
	text := post("body")
	c.send(text[:len(text)-2])
	poll(t, "nobody awaits the body", func() bool { return c.far.begun.Load() == c.sent })
	ended := n.beginShutdown(t, patient)
	n.sees(idle)
	c.send(text[len(text)-2:])
	if response, body := c.answer(); body != "body" || !response.Close {
		t.Errorf("answered %q, close: %v", body, response.Close)
	}
	check(t, await(t, ended))
}

// TestClose cuts off what is left: requests that are served fast, too.
func TestClose(t *testing.T) {
	n := startNode(t, nil)
	idle, busy := n.dial(t), n.dial(t)
	r := n.waits(t, busy)
	defer close(n.release)
	if err := n.shutdown(t, 20*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	check(t, n.Close())
	idle.ends()
	busy.ends()
	poll(t, "its handler does not learn of it", func() bool { return Gone(r.Context()) })
}
