package api

import (
	"bytes"
	"embed"
	"encoding/json"
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
	RequestName string
	Answers     []docsAnswer
}

type docsAnswer struct{ Status, Description, Schema string }

type docsSchema struct{ Name, JSON string }

type docsProblem struct {
	Name, Type, Title, Doc string
	Status                 int
}

// renderDocs makes the page of /docs from the OpenAPI document: no scripts, nothing
// from elsewhere.
func renderDocs(doc *huma.OpenAPI) []byte {
	page := docsPage{Info: doc.Info, Problems: docsProblems()}
	for _, tag := range doc.Tags {
		page.Tags = append(page.Tags, docsTag{tag.Name, docsOperations(doc, tag.Name)})
	}
	for name, schema := range doc.Components.Schemas.Map() {
		text, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			panic("api: a schema cannot be written: " + err.Error())
		}
		page.Schemas = append(page.Schemas, docsSchema{name, string(text)})
	}
	slices.SortFunc(page.Schemas, func(a, b docsSchema) int { return strings.Compare(a.Name, b.Name) })
	return renderPage("docs", page)
}

// docsOperations are those of one tag, by path and method.
func docsOperations(doc *huma.OpenAPI, tag string) (list []docsOperation) {
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete} {
			if op != nil && op.Tags[0] == tag {
				list = append(list, docsOperationOf(op))
			}
		}
	}
	slices.SortFunc(list, func(a, b docsOperation) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	return list
}

func docsOperationOf(op *huma.Operation) docsOperation {
	d := docsOperation{Operation: op}
	if op.RequestBody != nil {
		d.RequestName = refName(op.RequestBody.Content)
	}
	for status, response := range op.Responses {
		d.Answers = append(d.Answers, docsAnswer{status, response.Description, refName(response.Content)})
	}
	slices.SortFunc(d.Answers, func(a, b docsAnswer) int { return strings.Compare(a.Status, b.Status) })
	return d
}

// refName is the name of the schema of a body, if it has one.
func refName(content map[string]*huma.MediaType) string {
	for _, media := range content {
		if name, ok := strings.CutPrefix(media.Schema.Ref, "#/components/schemas/"); ok && len(content) == 1 {
			return name
		}
	}
	return ""
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
