package api

import (
	"bytes"
	"cmp"
	"embed"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs.html
var docsFiles embed.FS

var docsTemplates = template.Must(template.ParseFS(docsFiles, "docs.html"))

var htmlType = []string{"text/html; charset=utf-8"}

// docsPage is what the template of /docs shows.
type docsPage struct {
	Info     *huma.Info
	URL      string // of the service, where it is known
	Tags     []docsTag
	Schemas  []docsSchema
	Problems []docsProblem
}

type docsTag struct {
	Name       string
	Operations []docsOperation
}

type docsOperation struct {
	*huma.Operation
	Body     docsType
	Curl     string
	Response string // an example
	Answers  []docsAnswer
	Problems []docsAnswer // what is answered beside those
}

type docsAnswer struct {
	Status, Description string
	Body                docsType
}

type docsProblem struct {
	Name, Type, Title, Doc string
	Status                 int
}

// renderDocs makes the page of /docs from the OpenAPI document: no scripts, nothing
// from elsewhere. url is where it is served when the document names no server.
func renderDocs(doc *huma.OpenAPI, url string) []byte {
	page := docsPage{Info: doc.Info, URL: cmp.Or(url, "http://127.0.0.1:8080"), Problems: docsProblems(), Schemas: docsSchemas(doc)}
	if len(doc.Servers) > 0 {
		page.URL = doc.Servers[0].URL
	}
	for _, tag := range doc.Tags {
		page.Tags = append(page.Tags, docsTag{tag.Name, docsOperations(doc, tag.Name)})
	}
	return renderPage("docs", page)
}

// docsOperations are those of one tag, in the order of the routes.
func docsOperations(doc *huma.OpenAPI, tag string) (list []docsOperation) {
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete} {
			if op != nil && op.Tags[0] == tag {
				list = append(list, docsOperationOf(op))
			}
		}
	}
	place := map[string]int{}
	for i, rt := range routes(false) {
		place[rt.id] = i
	}
	slices.SortFunc(list, func(a, b docsOperation) int { return place[a.OperationID] - place[b.OperationID] })
	return list
}

func docsOperationOf(op *huma.Operation) docsOperation {
	d := docsOperation{Operation: op, Curl: curlLine(op), Response: examples[op.OperationID].response}
	if op.RequestBody != nil {
		d.Body = bodyType(op.RequestBody.Content)
	}
	for status, response := range op.Responses {
		a := docsAnswer{status, response.Description, bodyType(response.Content)}
		if status < "400" || status == "429" {
			d.Answers = append(d.Answers, a)
		} else {
			d.Problems = append(d.Problems, a)
		}
	}
	byStatus := func(a, b docsAnswer) int { return strings.Compare(a.Status, b.Status) }
	slices.SortFunc(d.Answers, byStatus)
	slices.SortFunc(d.Problems, byStatus)
	return d
}

// curlLine is a line to paste, for the example of an operation.
func curlLine(op *huma.Operation) string {
	x := examples[op.OperationID]
	line := "curl "
	if op.Method != http.MethodGet {
		line += "-X " + op.Method + " "
	}
	line += `"$URL` + strings.NewReplacer("{key}", x.path, "{id}", x.path, "{name}", x.path, "{n}", "1", "{limit}", "hourly").Replace(op.Path) + x.query + `"`
	if len(op.Security) > 0 {
		line += ` -H "Authorization: Bearer $KEY"`
	}
	if x.request != "" {
		for media := range op.RequestBody.Content {
			line += " \\\n  -H 'Content-Type: " + media + "' -d '" + x.request + "'"
		}
	}
	return line
}

func docsProblems() []docsProblem {
	list := make([]docsProblem, len(kinds))
	for i, k := range kinds {
		list[i] = docsProblem{Name: k.name, Type: k.typeURI(), Title: k.title, Doc: k.doc, Status: k.status}
	}
	return list
}

func renderPage(name string, data any) []byte {
	var page bytes.Buffer
	if err := docsTemplates.ExecuteTemplate(&page, name, data); err != nil {
		panic("api: the page " + name + " cannot be made: " + err.Error())
	}
	return page.Bytes()
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
	for _, p := range docsProblems() {
		if p.Name == name {
			return writePage(w, renderPage("problem", p))
		}
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
