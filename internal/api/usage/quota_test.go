package usage

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"

	"quotad/client"
	"quotad/internal/testkit"
)

// TestQuotaIsTheClients: the answer has the fields that the client reads.
func TestQuotaIsTheClients(t *testing.T) {
	t.Parallel()
	testkit.SameFields(t, reflect.TypeFor[quotaBody](), reflect.TypeFor[client.Quota]())
}

// TestGoneClientEndsItsViews: the limits of a customer's other meters are not viewed.
func TestGoneClientEndsItsViews(t *testing.T) {
	t.Parallel()
	asked := 0
	body := quotaBody{Limits: limitList{make([]standing, 3), func() error { asked++; return context.Canceled }}}
	if _, err := json.Marshal(body); !errors.Is(err, context.Canceled) || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}
