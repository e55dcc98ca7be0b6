package quotatest

import (
	"context"
	"errors"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
)

// How something is charged whose statement is held back.
const (
	Plain  = "plain"  // a hit without an id
	Once   = "once"   // a hit with an id
	Commit = "commit" // of a reservation
)

// Late is a charge whose statement reaches the server late, when its period has ended.
type Late struct {
	How  string
	Text string // of the statement that is held back
	Warm bool   // the counter was charged in the period that ends
	Gone bool   // the caller gives up meanwhile
}

// LateCharges are the ways in which a charge can be late, by name.
func LateCharges() map[string]Late {
	return map[string]Late{
		"a swap":                            {How: Plain, Text: "quotad_swap", Warm: true},
		"a swap that nobody waits for":      {How: Plain, Text: "quotad_swap", Warm: true, Gone: true},
		"a first hit":                       {How: Plain, Text: "quotad_make"},
		"a first hit that nobody waits for": {How: Plain, Text: "quotad_make", Gone: true},
		"a hit with an id":                  {How: Once, Text: "quotad_locked_lock", Warm: true},
		"a first hit with an id":            {How: Once, Text: "quotad_locked_lock"},
		"a commit":                          {How: Commit, Text: "quotad_locked_lock", Warm: true},
		// These have the row's lock. The server takes it from a node that says no more.
		"a hit with an id that holds the row": {How: Once, Text: "COMMIT", Warm: true},
		"a commit that holds the row":         {How: Commit, Text: "COMMIT", Warm: true},
	}
}

// HeldBack is a charge whose statement a gate holds back.
type HeldBack struct {
	t      testing.TB
	giveUp context.CancelFunc
	told   chan outcome
}

type outcome struct {
	decision model.Decision
	err      error
}

// HoldBack makes a charge, and holds its statement with a text in it back. It returns when the
// statement is held back. It goes when the gate is opened, or when the test ends.
func (g *Gate) HoldBack(t testing.TB, text string, charge func(context.Context) (model.Decision, error)) *HeldBack {
	t.Helper()
	ctx, giveUp := context.WithCancel(testkit.Context(t))
	h := &HeldBack{t: t, giveUp: giveUp, told: make(chan outcome, 1)}
	t.Cleanup(func() {
		giveUp()
		g.Open()
	})
	g.Hold(text)
	go func() {
		d, err := charge(ctx)
		h.told <- outcome{d, err}
	}()
	select {
	case <-g.Reached:
	case o := <-h.told:
		t.Fatalf("nothing was held back: %s, %v", o.decision.String(), o.err)
	}
	return h
}

// GiveUp has the caller give up. The caller is told that nobody knows what was charged.
func (h *HeldBack) GiveUp() {
	h.t.Helper()
	h.giveUp()
	if o := <-h.told; !errors.Is(o.err, session.ErrOutcomeUnknown) {
		h.t.Errorf("who gave up was told %v", o.err)
	}
}

// AdmittedFrom waits until the caller is told: the charge was admitted at an instant, µs, or later.
func (h *HeldBack) AdmittedFrom(at int64) {
	h.t.Helper()
	if o := <-h.told; o.err != nil || !o.decision.Allowed || o.decision.At < at {
		h.t.Errorf("the caller was told %s, %v", o.decision.String(), o.err)
	}
}
