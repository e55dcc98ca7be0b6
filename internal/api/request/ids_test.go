package request

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"

	"quotad/internal/api/problem"
	"quotad/internal/quota/model"
)

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", model.MaxID)
	for field, want := range map[string]string{
		`abc`: "abc", `"abc"`: "abc", `"a b"`: "a b", `a b`: "a b", `"a\"b\\"`: `a"b\`, `a"b\`: `a"b\`, `é`: "é", `7`: "7", `a, b`: "a, b",
		long: long, `"` + long + `"`: long, `"` + strings.Repeat(`\\`, model.MaxID) + `"`: strings.Repeat(`\`, model.MaxID),
		`?1`: "?1", `:aGk=:`: ":aGk=:",
	} {
		if got, err := IdempotencyKey(http.Header{IdempotencyHeader: {field}}); err != nil || got != want {
			t.Errorf("%q: %q %v, want %q", field, got, err, want)
		}
	}
	for _, field := range []string{
		``, `""`, `"`, `"a`, `"a\"`, `"a\b"`, `"a"b"`, `"a" `, `"a";b=1`, `"a", "b"`, `"é"`, "\"a\tb\"", "a\tb", "\xff", "\u0085",
		long + "x", `"` + long + `x"`, strings.Repeat("é", 128),
	} {
		if got, err := IdempotencyKey(http.Header{IdempotencyHeader: {field}}); err == nil || problem.Of(err).Fields[0].Field != IdempotencyHeader {
			t.Errorf("%q is taken as %q, %v", field, got, err)
		}
	}
	// Every string of a structured field is read as what it says.
	for _, id := range []string{"a", `"`, `\`, `\"\\"`, `a "b" \c ~`, long} {
		field, err := httpsfv.Marshal(httpsfv.NewItem(id))
		check(t, err)
		if got, err := IdempotencyKey(http.Header{IdempotencyHeader: {field}}); err != nil || got != id {
			t.Errorf("%q is sent as %s and read as %q, %v", id, field, got, err)
		}
	}
	if got, err := IdempotencyKey(http.Header{IdempotencyHeader: {"a", "a"}}); err == nil {
		t.Errorf("two headers are taken as %q", got)
	}
	if got, err := IdempotencyKey(http.Header{}); err != nil || got != "" {
		t.Errorf("no header: %q %v", got, err)
	}
}

func TestOneID(t *testing.T) {
	t.Parallel()
	for in, want := range map[[2]string]string{{"", ""}: "", {"a", ""}: "a", {"", "b"}: "b", {"a", "a"}: "a"} {
		if got, err := OneID(in[0], in[1]); err != nil || got != want {
			t.Errorf("%q: %q %v", in, got, err)
		}
	}
	if got, err := OneID("a", "b"); problem.Of(err).Fields[0].Field != "id" {
		t.Errorf("two ids are taken as %q, %v", got, err)
	}
}
