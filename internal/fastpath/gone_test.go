package fastpath

import (
	"context"
	"net"
	"testing"
)

func TestGone(t *testing.T) {
	tests := []struct {
		name string
		do   func(t *testing.T, c *client)
		gone bool
	}{
		{"there", func(*testing.T, *client) {}, false},
		{"sent more", func(_ *testing.T, c *client) { c.send(post("more")) }, false},
		{"closed", func(t *testing.T, c *client) { check(t, c.Close()) }, true},
		{"sends no more", func(t *testing.T, c *client) { check(t, c.CloseWrite()) }, true},
		{"reset", func(t *testing.T, c *client) {
			check(t, c.SetLinger(0))
			check(t, c.Close())
		}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := startNode(t, nil)
			defer close(n.release)
			c := n.dial(t)
			r := n.waits(t, c)
			if Gone(r.Context()) {
				t.Error("gone at once")
			}
			test.do(t, c)
			if test.gone {
				poll(t, "not gone", func() bool { return Gone(r.Context()) })
			}
			for range 100 {
				if Gone(r.Context()) != test.gone {
					t.Fatalf("gone: %v", !test.gone)
				}
			}
		})
	}
}

// TestGoneTakesNothing has the next request come while one is asked whether it is gone.
func TestGoneTakesNothing(t *testing.T) {
	n := startNode(t, nil)
	c := n.dial(t)
	r := n.waits(t, c)
	c.send(post("next"))
	for range 100 {
		if Gone(r.Context()) {
			t.Fatal("gone")
		}
	}
	close(n.release)
	for _, want := range []string{"wait", "next"} {
		if _, got := c.answer(); got != want {
			t.Errorf("answered %q, want %q", got, want)
		}
	}
}

// TestGoneOthers is about contexts of which nothing is known.
func TestGoneOthers(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	here, there := net.Pipe()
	check(t, here.Close())
	check(t, there.Close())
	for _, ctx := range []context.Context{context.Background(), ended, newConnContext(ended, here)} {
		if Gone(ctx) {
			t.Errorf("gone: %v", ctx)
		}
	}
}
