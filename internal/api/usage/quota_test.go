package usage

import (
	"context"
	"errors"
	"testing"

	"github.com/go-json-experiment/json"
)

// TestGoneClientEndsItsViews: the limits of a customer's other meters are not viewed.
func TestGoneClientEndsItsViews(t *testing.T) {
	t.Parallel()
	asked := 0
	body := quotaBody{Limits: limitList{make([]standing, 3), func() error { asked++; return context.Canceled }}}
	if _, err := json.Marshal(body); !errors.Is(err, context.Canceled) || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}
