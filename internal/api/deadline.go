package api

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// deadline is a request's context with a bound on how long it may wait. The bound runs
// from the first time that somebody asks for Done: what is answered from memory never
// does, and so pays for no timer. It must be ended.
type deadline struct {
	request context.Context
	after   time.Duration
	arming  sync.Mutex
	armed   atomic.Pointer[armedDeadline]
}

type armedDeadline struct {
	context.Context
	cancel context.CancelFunc
}

// arm returns the context with the bound, which runs from the first call on.
func (d *deadline) arm() context.Context {
	if a := d.armed.Load(); a != nil {
		return a.Context
	}
	d.arming.Lock()
	defer d.arming.Unlock()
	if a := d.armed.Load(); a != nil {
		return a.Context
	}
	ctx, cancel := context.WithTimeout(d.request, d.after)
	d.armed.Store(&armedDeadline{ctx, cancel})
	return ctx
}

// present is the context as it is, without arming it.
func (d *deadline) present() context.Context {
	if a := d.armed.Load(); a != nil {
		return a.Context
	}
	return d.request
}

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} { return d.arm().Done() }

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) { return d.arm().Deadline() }

// Err implements context.Context.
func (d *deadline) Err() error { return d.present().Err() }

// Value implements context.Context. Once armed it finds the armed context itself, so
// that contexts made from this one need no goroutine to follow it.
func (d *deadline) Value(key any) any { return d.present().Value(key) }

// end releases what the bound took.
func (d *deadline) end() {
	if a := d.armed.Load(); a != nil {
		a.cancel()
	}
}
