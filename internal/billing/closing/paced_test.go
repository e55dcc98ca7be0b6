package closing

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestPause: after a transaction the worker waits for what the pace leaves, and for half as long as
// the transaction took at least.
func TestPause(t *testing.T) {
	for _, c := range []struct {
		took, want time.Duration // of 70 customers, at a pace of 350 a second
	}{
		{0, 200 * time.Millisecond},
		{50 * time.Millisecond, 150 * time.Millisecond},
		{150 * time.Millisecond, 75 * time.Millisecond},
		{time.Second, 500 * time.Millisecond},
	} {
		if pause := pauseOf(70, c.took); pause != c.want {
			t.Errorf("after %s it waits for %s, want %s", c.took, pause, c.want)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	l := &Worker{}
	if err := l.pause(over, 60*pace, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("it is over: %v", err)
	}
}
