package api

import (
	"bytes"
	"context"
	"errors"
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

// identityKey is the context's key of an Identity. Nobody outside this package can set it, so no
// request from a client has one.
type identityKey struct{}

// Ask answers a request within the process as Handler answers a client's. path holds the query,
// too; every part of it is percent-encoded. body is JSON, or empty.
func (s *Server) Ask(ctx context.Context, as Identity, method, path string, body []byte, header http.Header) (int, http.Header, []byte) {
	r, err := http.NewRequestWithContext(context.WithValue(ctx, identityKey{}, as), method, path, bytes.NewReader(body))
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
