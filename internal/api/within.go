package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"quotad/internal/api/problem"
	"quotad/internal/plans"
)

// Identity is whom a request acts for that was made within the process, instead of a key.
type Identity struct {
	Scope   plans.Scope
	KeyID   string // of the key that a session began with; what the requests of a portal have in common
	KeyName string
}

// identityKey is the context's key of an Identity. The context of a request that comes by the network
// is made here, so that it has none.
type identityKey struct{}

// As is a context whose requests act for an identity. Only Within looks for one.
func As(ctx context.Context, who Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, who)
}

// Within is a transport to s within the process: a request is answered as Handler answers a
// client's. Whom it acts for is in its context; see As.
func (s *Server) Within() http.RoundTripper { return within{s} }

type within struct{ server *Server }

// RoundTrip implements http.RoundTripper. It never fails.
func (w within) RoundTrip(r *http.Request) (*http.Response, error) {
	a := kept{header: http.Header{}, status: http.StatusOK}
	w.server.dispatch(&a, r)
	canonical := http.Header{} // the API writes some names as HTTP does, such as ETag, and Get finds others
	for name, values := range a.header {
		canonical[http.CanonicalHeaderKey(name)] = values
	}
	return &http.Response{StatusCode: a.status, Header: canonical, Body: io.NopCloser(&a.body), ContentLength: int64(a.body.Len()), Request: r}, nil
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

// signInsPerMinute is how often an address may fail to sign in to the pages.
const signInsPerMinute = 5

// SignIn returns the live key of a secret that somebody signs in to the pages with. Wrong ones
// are limited by address, more strictly than those of requests: a person types them. Without a
// key, status and detail say why as an answer to a request would.
func (s *Server) SignIn(r *http.Request, secret string) (key plans.Key, status int, detail string) {
	key, err := s.authenticateBy(s.signIns, r, secret)
	switch {
	case errors.Is(err, plans.ErrUnknownKey):
		return key, faultWrongKey.Kind.Status, faultWrongKey.Detail
	case err != nil:
		f := problem.Of(err)
		return key, f.Kind.Status, f.Detail
	}
	return key, http.StatusOK, ""
}
