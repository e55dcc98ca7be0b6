package service

import (
	"net/http"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
)

var pageType = []string{"text/html; charset=utf-8"}

func (s *Room) serveOpenAPI(w http.ResponseWriter, _ *http.Request, _ serve.Params) int {
	return respond.Write(w, http.StatusOK, respond.PlainJSON, s.options.OpenAPI())
}

// ToDocs redirects / to /docs for people who open the service's URL in a browser.
func (s *Room) ToDocs(w http.ResponseWriter, _ *http.Request, _ serve.Params) int {
	h := w.Header()
	h.Set("Location", "/docs")
	h["Cache-Control"] = respond.NoStore
	w.WriteHeader(http.StatusFound)
	return http.StatusFound
}

func (s *Room) serveDocs(w http.ResponseWriter, _ *http.Request, _ serve.Params) int {
	return writePage(w, s.options.Docs())
}

// serveProblem serves the page of one problem type, to which the type's URI leads.
func (s *Room) serveProblem(w http.ResponseWriter, r *http.Request, _ serve.Params) int {
	name, err := request.PathValue(r, "name")
	if err != nil {
		return s.Fail(w, r, err)
	}
	if page := apidoc.ProblemPage(name); page != nil {
		return writePage(w, page)
	}
	return problem.Write(w, &problem.Fault{Kind: problem.KindNotFound, Detail: "there is no problem type of this name"})
}

// writePage sends a page with a content security policy that lets the page load nothing, because the page is
// self-contained.
func writePage(w http.ResponseWriter, page []byte) int {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	return respond.Write(w, http.StatusOK, pageType, page)
}
