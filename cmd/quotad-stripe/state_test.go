package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit/pgtest"
)

// A state file goes with one quotad and one account, is held by one bridge, and is asked for.
func TestForeignStateFiles(t *testing.T) {
	w := newWorld(t)
	id := w.invoice("first", bill{base: 1000})
	s := w.settings()
	w.drain(s)
	raw, err := os.ReadFile(s.State)
	if err != nil {
		t.Fatal(err)
	}
	opens := func(s settings) error {
		b, err := open(w.ctx, s, w.logger())
		if err == nil {
			b.store.close()
		}
		return err
	}
	edit := func(change func(*state)) settings {
		t.Helper()
		var st state
		if err := json.Unmarshal(raw, &st); err != nil {
			t.Fatal(err)
		}
		change(&st)
		edited, _ := json.Marshal(st)
		s := s
		s.State = filepath.Join(t.TempDir(), "state.json")
		if err := os.WriteFile(s.State, edited, 0o600); err != nil {
			t.Fatal(err)
		}
		return s
	}
	fresh, live := w.settings(), edit(func(*state) {})
	fresh.Start = ""
	live.StripeKey = "sk_live_1"
	broken := edit(func(*state) {})
	if err := os.WriteFile(broken.State, raw[:len(raw)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		s    settings
		says string
	}{
		"another event":          {edit(func(s *state) { s.Last.Type = "plan.published" }), "another installation"},
		"an event of later":      {edit(func(s *state) { s.Cursor += 500 }), "another installation, or quotad's database was restored"},
		"another account":        {edit(func(s *state) { s.Account = "acct_2" }), "acct_2"},
		"another mode":           {live, "test mode"},
		"a newer form":           {edit(func(s *state) { s.Format = 2 }), "has format 2"},
		"half a file":            {broken, "cannot be read"},
		"no file and no --start": {fresh, "--start"},
	} {
		if err := opens(c.s); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	b, err := open(w.ctx, s, w.logger())
	if err != nil {
		t.Fatal(err)
	}
	if err := opens(s); !errors.Is(err, errLocked) {
		t.Errorf("a second bridge opens the file: %v", err)
	}
	b.store.close()
	if after, err := os.ReadFile(s.State); err != nil || string(after) != string(raw) {
		t.Errorf("the file has changed: %v", err)
	}

	// Events were deleted that nobody had read.
	pgtest.Exec(t, w.database, "DELETE FROM events WHERE id <= 3")
	gap := edit(func(s *state) { s.Cursor = 1 })
	if err := opens(gap); err == nil || !strings.Contains(err.Error(), "--accept-gap") {
		t.Errorf("a gap: %v", err)
	}
	if gap.AcceptGap = true; opens(gap) != nil {
		t.Errorf("a gap that is accepted: %v", opens(gap))
	}

	// Only what is finalized from now on.
	now := w.settings()
	now.Start = "now"
	w.newStripe(w.stripe.mock)
	now.StripeURL = w.url
	w.drain(now)
	second := w.invoice("second", bill{base: 2000})
	w.drain(now)
	if w.same(second); len(w.stripe.of(id)) != 0 {
		t.Error("an invoice of before is at Stripe")
	}
}

// A run ends by itself where it must not go on, and by its context.
func TestServeEnds(t *testing.T) {
	w := newWorld(t)
	w.invoice("first", bill{base: 1000})
	s := w.settings()
	b, err := open(w.ctx, s, w.logger())
	if err != nil {
		t.Fatal(err)
	}
	w.rounds(b)
	b.store.change(func(s *state) { s.Last.At = s.Last.At.Add(time.Second) }) // the database is another one now
	var stop *feedError
	if err := b.serve(w.ctx); !errors.As(err, &stop) {
		t.Errorf("the bridge ends with %v", err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	second := w.settings()
	if b, err = open(w.ctx, second, w.logger()); err != nil {
		t.Fatal(err)
	}
	if err := b.serve(ctx); err != nil {
		t.Errorf("the bridge that was stopped ends with %v", err)
	}
}
