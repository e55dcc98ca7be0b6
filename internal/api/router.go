package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"quotad/internal/api/hits"
	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
)

// Handler returns a handler that serves every route.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.dispatch) }

// dispatch passes single hits directly to their route. Every GET route also serves HEAD, for which net/http
// omits the body.
func (s *Server) dispatch(w http.ResponseWriter, r *http.Request) {
	if isHit(r) {
		s.single.ServeHTTP(w, r)
		return
	}
	if hits.Asks(r) {
		s.gateways.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodHead {
		ctx := chi.NewRouteContext()
		ctx.Routes, ctx.RouteMethod = s.router, http.MethodGet
		r = r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, ctx))
	}
	s.router.ServeHTTP(w, r)
}

// isHit reports whether a request is a single hit, as nearly all requests are.
func isHit(r *http.Request) bool {
	return r.URL.Path == hits.Pattern && r.URL.RawPath == "" && r.Method == http.MethodPost
}

func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/docs/" {
		s.Service.ToDocs(w, r, serve.Params{})
		return
	}
	problem.Write(w, &problem.Fault{Kind: problem.KindNotFound, Detail: "there is no such route: see /docs"})
}

func (s *Server) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if r.URL.RawPath != "" {
		path = r.URL.RawPath
	}
	var allow []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		if s.router.Find(chi.NewRouteContext(), method, path) != "" {
			allow = append(allow, method)
			if method == http.MethodGet {
				allow = append(allow, http.MethodHead)
			}
		}
	}
	has := strings.Join(allow, ", ")
	problem.Write(w, &problem.Fault{
		Kind: problem.KindMethod, Detail: "this path does not have the method " + plans.Shorten(r.Method) + ": it has " + has, Allow: has,
	})
}
