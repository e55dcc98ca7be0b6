package serve

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestGoneClientEndsEncoding: an ordinary answer is made no further when its request is over.
func TestGoneClientEndsEncoding(t *testing.T) {
	s := New(Options{Registry: prometheus.NewRegistry(), Wall: time.Now})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	made := 0
	items := make([]itemMade, 1000)
	for i := range items {
		items[i].made = func() {
			if made++; made == 10 {
				cancel()
			}
		}
	}
	if body, err := s.encode(ctx, "", items); !errors.Is(err, context.Canceled) || made > 500 {
		t.Errorf("%d items were made, %d bytes: %v", made, len(body), err)
	}
	made = 11
	if body, err := s.encode(t.Context(), "", items); err != nil || made != 1011 || len(body) < 1000*1000 {
		t.Errorf("%d items, %d bytes: %v", made-11, len(body), err)
	}
}

// An itemMade is an item of 1 kB that says when it is made.
type itemMade struct{ made func() }

func (i itemMade) MarshalText() ([]byte, error) {
	i.made()
	return []byte(strings.Repeat("x", 1000)), nil
}
