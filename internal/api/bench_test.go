package api

import (
	"io"
	"net/http"
	"testing"
)

// benchWriter is what net/http's response costs least: a header map and nothing else.
type benchWriter struct {
	header http.Header
	status int
	bytes  int
}

func (w *benchWriter) Header() http.Header         { return w.header }
func (w *benchWriter) WriteHeader(status int)      { w.status = status }
func (w *benchWriter) Write(b []byte) (int, error) { w.bytes += len(b); return len(b), nil }

type benchBody struct {
	text string
	at   int
}

func (b *benchBody) Read(p []byte) (int, error) {
	n := copy(p, b.text[b.at:])
	if b.at += n; b.at == len(b.text) {
		return n, io.EOF
	}
	return n, nil
}

func (b *benchBody) Close() error { return nil }

// hammer makes what calls the handler directly, and wants one status.
func hammer(t testing.TB, n *node, text string, status int) func() {
	t.Helper()
	handler := n.server.Handler()
	body := &benchBody{text: text}
	r, err := http.NewRequest("POST", "/v1/hits", body)
	check(t, err)
	r.Header.Set("Authorization", "Bearer "+adminSecret)
	r.Header.Set("Content-Type", "application/json")
	w := &benchWriter{header: http.Header{}}
	return func() {
		clear(w.header)
		body.at = 0
		handler.ServeHTTP(w, r)
		if w.status != status {
			t.Fatalf("status %d", w.status)
		}
	}
}

const benchLimits = `{"name":"daily","meter":"requests","algorithm":"fixed_window","limit":1,"window":"1d"},
	{"name":"burst","meter":"requests","algorithm":"token_bucket","limit":100,"window":"1m"}`

const benchHit = `{"customer":"acme","meter":"requests","cost":1}`

// One refusal from memory, HTTP server and client left out: nothing of it waits, so this
// is the API's own time (and the engine's look into its memory).
func BenchmarkHitRefusedFromMemory(b *testing.B) {
	n := newNode(b)
	n.setUp(benchLimits)
	n.want(200, "POST", "/v1/hits", benchHit)
	n.want(429, "POST", "/v1/hits", benchHit)
	refuse := hammer(b, n, benchHit, 429)
	b.ReportAllocs()
	for b.Loop() {
		refuse()
	}
}
