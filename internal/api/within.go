package api

import (
	"bytes"
	"io"
	"net/http"

	"quotad/internal/api/serve"
)

// Within returns a transport to s within the process. It responds to requests as Handler responds to a client.
// The identity of the user is in the request's context; see serve.As.
func (s *Server) Within() http.RoundTripper { return within{s} }

type within struct{ server *Server }

// RoundTrip implements http.RoundTripper. It never fails.
func (w within) RoundTrip(r *http.Request) (*http.Response, error) {
	a := kept{header: http.Header{}, status: http.StatusOK}
	serve.IdentifyWithin(&a, r)
	w.server.dispatch(&a, r)
	canonical := http.Header{} // the API writes some names, such as ETag, in another form than Get expects
	for name, values := range a.header {
		canonical[http.CanonicalHeaderKey(name)] = values
	}
	return &http.Response{StatusCode: a.status, Header: canonical, Body: io.NopCloser(&a.body), ContentLength: int64(a.body.Len()), Request: r}, nil
}

// kept is an http.ResponseWriter that keeps the response.
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
