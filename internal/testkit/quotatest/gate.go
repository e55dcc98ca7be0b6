package quotatest

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
)

// Gate holds back what is sent with a text in it, once, until it is opened.
type Gate struct {
	Reached chan struct{} // closed when something is held back
	text    atomic.Pointer[string]
	opened  chan struct{}
	open    sync.Once
}

// NewGate holds nothing back yet.
func NewGate() *Gate { return &Gate{Reached: make(chan struct{}), opened: make(chan struct{})} }

// Hold has the gate hold back the next of what has text in it.
func (g *Gate) Hold(text string) { g.text.Store(&text) }

// Open lets it go. A test that ends early opens it before its engine is closed.
func (g *Gate) Open() { g.open.Do(func() { close(g.opened) }) }

// Wrap is a connection whose writes go through the gate.
func (g *Gate) Wrap(conn net.Conn) net.Conn { return gated{conn, g} }

type gated struct {
	net.Conn
	gate *Gate
}

func (c gated) Write(p []byte) (int, error) {
	g := c.gate
	if text := g.text.Load(); text != nil && bytes.Contains(p, []byte(*text)) && g.text.CompareAndSwap(text, nil) {
		close(g.Reached)
		<-g.opened
	}
	return c.Conn.Write(p)
}
