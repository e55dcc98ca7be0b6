package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"
)

var errKilled = errors.New("killed by the test")

// saboteur is between the bridge and both sides. At its at-th call the bridge is killed: before the
// call is sent, after its answer is lost, or with the call still under way, which then arrives when
// the next bridge has looked and asks for the same.
type saboteur struct {
	under http.RoundTripper
	mode  string // before, after, late
	at    int
	kill  func()

	mu   sync.Mutex
	n    int
	dead bool
	held *http.Request // under way
	body []byte
}

func (s *saboteur) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return nil, errKilled
	}
	s.n++
	if s.n != s.at {
		if s.held != nil && s.held.Method == r.Method && s.held.URL.Path == r.URL.Path {
			s.arrive()
		}
		return s.under.RoundTrip(r)
	}
	s.dead = true
	switch s.mode {
	case "after":
		if response, err := s.under.RoundTrip(r); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	case "late":
		if r.Body != nil {
			s.body, _ = io.ReadAll(r.Body)
		}
		s.held = r.Clone(context.Background())
	}
	s.kill()
	return nil, errKilled
}

// arrive delivers the call that was under way.
func (s *saboteur) arrive() {
	held := s.held
	s.held = nil
	held.Body, held.GetBody = io.NopCloser(bytes.NewReader(s.body)), nil
	if response, err := s.under.RoundTrip(held); err == nil {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}

// crash runs a bridge that is killed at a call, and reports whether it came so far. The state file is
// then as it was at the kill.
func (w *world) crash(s settings, sabotage *saboteur) (killed bool) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	var left []byte
	sabotage.under = s.transport
	sabotage.kill = func() {
		killed = true
		left, _ = os.ReadFile(s.State) // nil: there is none yet
		cancel()
	}
	s.transport = sabotage
	b, err := open(ctx, s, slog.New(slog.DiscardHandler))
	if err == nil {
		b.sweepAt = time.Now().Add(time.Hour) // it would look at all that is open, which is not what is tested
		for range 50 {
			b.askStripeAt = time.Time{}
			if err = b.round(ctx); err != nil || ctx.Err() != nil || b.idle() {
				break
			}
			time.Sleep(2 * time.Millisecond)
		}
		b.store.close()
	}
	if !killed {
		if err != nil {
			w.t.Fatalf("the bridge ended by itself: %v", err)
		}
		return false
	}
	if left == nil {
		_ = os.Remove(s.State)
	} else if err := os.WriteFile(s.State, left, 0o600); err != nil {
		w.t.Fatal(err)
	}
	sabotage.dead = false
	return true
}
