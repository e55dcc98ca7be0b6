package api

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestDeadlineRunsFromTheFirstWait(t *testing.T) {
	d := &deadline{request: t.Context(), after: time.Millisecond}
	defer d.end()
	time.Sleep(5 * time.Millisecond)
	if d.Err() != nil || d.armed.Load() != nil {
		t.Fatalf("the bound ran before anybody waited: %v", d.Err())
	}
	<-d.Done()
	if !errors.Is(d.Err(), context.DeadlineExceeded) {
		t.Errorf("it ended with %v", d.Err())
	}
}

// Contexts made from it, before or after it is armed, end with it and with the request.
func TestDeadlinePassesOn(t *testing.T) {
	request, giveUp := context.WithCancel(t.Context())
	d := &deadline{request: request, after: time.Hour}
	derived, cancel := context.WithTimeout(d, time.Minute)
	defer cancel()
	if end, ok := d.Deadline(); !ok || time.Until(end) < 59*time.Minute {
		t.Errorf("deadline in %s", time.Until(end))
	}
	giveUp()
	<-derived.Done()
	if !errors.Is(d.Err(), context.Canceled) {
		t.Errorf("the client went away: %v", d.Err())
	}
	d.end()
	ended := &deadline{request: t.Context(), after: time.Hour}
	<-ended.arm2(t)
}

// arm2 ends a deadline from elsewhere while others ask for it, for the race detector.
func (d *deadline) arm2(t *testing.T) <-chan struct{} {
	for range 8 {
		go func() { _ = d.Value(t); _ = d.Err(); <-d.Done() }()
	}
	done := d.Done()
	d.end()
	return done
}
