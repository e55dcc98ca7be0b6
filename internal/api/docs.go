package api

import "net/http"

var htmlType = []string{"text/html; charset=utf-8"}

// OpenAPI is the document that /openapi.json serves, for `make generate`.
func OpenAPI(version string) []byte {
	return newDocument(operations(routes(false)), version, "").render()
}

func (s *Server) serveOpenAPI(w http.ResponseWriter, _ *http.Request, _ query) int {
	return writeBody(w, http.StatusOK, plainJSON, s.openAPI)
}

// toDocs is for people who open what they were given as the URL.
func (s *Server) toDocs(w http.ResponseWriter, _ *http.Request, _ query) int {
	h := w.Header()
	h.Set("Location", "/docs")
	h["Cache-Control"] = noStore
	w.WriteHeader(http.StatusFound)
	return http.StatusFound
}

func (s *Server) serveDocs(w http.ResponseWriter, _ *http.Request, _ query) int {
	return writePage(w, s.docsPage)
}

// serveProblem documents one problem type: what its URI leads to.
func (s *Server) serveProblem(w http.ResponseWriter, r *http.Request, _ query) int {
	name, err := pathValue(r, "name")
	if err != nil {
		return s.fail(w, r, err)
	}
	if page := problemPage(name); page != nil {
		return writePage(w, page)
	}
	return writeProblem(w, &fault{kind: kindNotFound, detail: "there is no problem type of this name"})
}

// writePage sends a page that may load nothing: it needs nothing but itself.
func writePage(w http.ResponseWriter, page []byte) int {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	return writeBody(w, http.StatusOK, htmlType, page)
}
