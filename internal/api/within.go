package api

import (
	"bytes"
	"context"
	"net/http"

	"quotad/internal/api/serve"
)

// Ask answers a request within the process as Handler answers a client's. path holds the query,
// too; every part of it is percent-encoded. body is JSON, or empty.
func (s *Server) Ask(ctx context.Context, as serve.Identity, method, path string, body []byte, header http.Header) (int, http.Header, []byte) {
	r, err := http.NewRequestWithContext(serve.As(ctx, as), method, path, bytes.NewReader(body))
	if err != nil {
		panic("api: a request within the process that cannot be: " + err.Error())
	}
	for name, values := range header {
		r.Header[name] = values
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	a := kept{header: http.Header{}, status: http.StatusOK}
	s.dispatch(&a, r)
	canonical := http.Header{} // the API writes some names as HTTP does, such as ETag, and Get finds others
	for name, values := range a.header {
		canonical[http.CanonicalHeaderKey(name)] = values
	}
	return a.status, canonical, a.body.Bytes()
}

// kept is an http.ResponseWriter that keeps the answer.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *kept) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *kept) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *kept) Write(b []byte) (int, error) { return a.body.Write(b) }
