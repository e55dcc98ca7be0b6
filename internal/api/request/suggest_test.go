package request

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"quotad/client"
	"quotad/internal/plans"
)

func TestNearestName(t *testing.T) {
	t.Parallel()
	known := []string{"customer", "meter", "cost", "attributes", "id", "dry_run"}
	for name, want := range map[string]string{
		"customr": "customer", "Customer": "customer", "metre": "meter", "coast": "cost", "dryRun": "dry_run", "DRY_RUN": "dry_run",
		"ids": "id", "attribute": "attributes", "at": "", "amount": "", "idempotency_key": "", "": "", "ö": "",
		strings.Repeat("customer", 10_000): "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%.20q: %q, not %q", name, got, want)
		}
	}
	if got := Instead("x", nil); got != "" {
		t.Errorf("where none is known: %q", got)
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"cost", "coast", 1}, {"ab", "ba", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, not %d", c.a, c.b, got, c.want)
		}
	}
}

func TestMembersOf(t *testing.T) {
	t.Parallel()
	if got := MembersOf(reflect.TypeFor[client.Batch]()); !slices.Equal(got, []string{"hits", "atomic"}) {
		t.Errorf("of a batch: %v", got)
	}
	// Those of what is a part of it are its own.
	if got := MembersOf(reflect.TypeFor[plans.Limit]()); !slices.Contains(got, "meter") || !slices.Contains(got, "window") || slices.Contains(got, "") {
		t.Errorf("of a limit: %v", got)
	}
	for _, none := range []reflect.Type{nil, reflect.TypeFor[[]string]()} {
		if got := MembersOf(none); got != nil {
			t.Errorf("%v: %v", none, got)
		}
	}
}
