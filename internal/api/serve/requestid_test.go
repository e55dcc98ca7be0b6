package serve

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// The id of a request is taken where it is sane, and else made.
func TestIdentify(t *testing.T) {
	for given, taken := range map[string]bool{
		"a": true, "ticket-4711": true, "~!\"": true, strings.Repeat("x", maxRequestID): true,
		"": false, strings.Repeat("x", maxRequestID+1): false, "a b": false, "a\tb": false, "a\nb": false, "ä": false, "a\x7f": false,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header[requestIDHeader] = []string{given}
		w := httptest.NewRecorder()
		Identify(w, r)
		if id := RequestID(w); taken != (id == given) || !validRequestID(id) || !taken && !strings.HasPrefix(id, "req_") {
			t.Errorf("%q became %q", given, id)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header[requestIDHeader] = []string{"two", "ids"}
	w := httptest.NewRecorder()
	if Identify(w, r); !strings.HasPrefix(RequestID(w), "req_") {
		t.Errorf("of two ids %q was taken", RequestID(w))
	}
	// A page asks the API under its own id.
	w = httptest.NewRecorder()
	r = httptest.NewRequestWithContext(As(t.Context(), Identity{Request: "page-1"}), http.MethodGet, "/", nil)
	if IdentifyWithin(w, r); RequestID(w) != "page-1" {
		t.Errorf("within the process the id is %q", RequestID(w))
	}
	if RequestID(httptest.NewRecorder()) != "" {
		t.Error("an answer without an id has one")
	}
}

// Made ids differ, whoever makes them at once, and cost no allocation.
func TestMadeRequestIDs(t *testing.T) {
	m, other := newRequestIDs(), newRequestIDs()
	const callers, each = 8, 1000
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for range callers {
		all.Go(func() {
			for range each {
				id := m.next()
				mu.Lock()
				if len(id) != 1 || cap(id) != 1 || !validRequestID(id[0]) || seen[id[0]] {
					t.Errorf("the id %q: seen before %v", id, seen[id[0]])
				}
				seen[id[0]] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(seen) != callers*each {
		t.Errorf("%d ids", len(seen))
	}
	if seen[other.next()[0]] {
		t.Error("two processes make the same id")
	}
	if n := testing.AllocsPerRun(10_000, func() { m.next() }); n > 0 {
		t.Errorf("%v allocations an id", n)
	}
}

func BenchmarkIdentify(b *testing.B) {
	r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/v1/hits", nil)
	w := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		Identify(w, r)
	}
}
