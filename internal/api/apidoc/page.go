package apidoc

import (
	"bytes"
	"cmp"
	"embed"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"quotad/internal/api/problem"
)

//go:embed docs.html
var docsFiles embed.FS

var docsTemplates = template.Must(template.New("docs.html").Funcs(template.FuncMap{"blocks": blocks}).ParseFS(docsFiles, "docs.html"))

// docsPage is the data of the template of /docs.
type docsPage struct {
	Info     *huma.Info
	URL      string // of the service, if it is known
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
	Response string // example of the response
	Answers  []docsAnswer
	Problems []docsAnswer // responses other than the documented success responses
}

type docsAnswer struct {
	Status, Description string
	Body                docsType
}

type docsProblem struct {
	Name, Type, Title, Doc string
	Status                 int
}

// Page returns the page /docs, which has no scripts and loads nothing from other sites. url is used as the
// server's address if the document names no server.
func (d *Document) Page(url string) []byte {
	page := docsPage{Info: d.openAPI.Info, URL: cmp.Or(url, "http://127.0.0.1:8080"), Problems: docsProblems(), Schemas: docsSchemas(d.openAPI)}
	if len(d.openAPI.Servers) > 0 {
		page.URL = d.openAPI.Servers[0].URL
	}
	for _, tag := range d.openAPI.Tags {
		page.Tags = append(page.Tags, docsTag{tag.Name, d.operations(tag.Name)})
	}
	return renderPage("docs", page)
}

// ProblemPage returns the page of a problem kind, to which the problem's type URI leads. It returns nil for an
// unknown name.
func ProblemPage(name string) []byte {
	for _, p := range docsProblems() {
		if p.Name == name {
			return renderPage("problem", p)
		}
	}
	return nil
}

// operations returns the operations of one tag in their original order.
func (d *Document) operations(tag string) (list []docsOperation) {
	for _, item := range d.openAPI.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete} {
			if op != nil && op.Tags[0] == tag {
				list = append(list, docsOperationOf(op))
			}
		}
	}
	place := map[string]int{}
	for i := range d.list {
		place[d.list[i].ID] = i
	}
	slices.SortFunc(list, func(a, b docsOperation) int { return place[a.OperationID] - place[b.OperationID] })
	return list
}

func docsOperationOf(op *huma.Operation) docsOperation {
	d := docsOperation{Operation: op, Curl: curlLine(op), Response: Examples[op.OperationID].Response}
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

// curlLine returns a curl command to paste for the example of an operation.
func curlLine(op *huma.Operation) string {
	x := Examples[op.OperationID]
	line := "curl "
	if op.Method != http.MethodGet {
		line += "-X " + op.Method + " "
	}
	line += `"$URL` + strings.NewReplacer("{key}", x.Path, "{id}", x.Path, "{name}", x.Path, "{n}", "1", "{limit}", "hourly").Replace(op.Path) + x.Query + `"`
	if len(op.Security) > 0 {
		line += ` -H "Authorization: Bearer $KEY"`
	}
	for i := 0; i < len(x.Headers); i += 2 {
		line += ` -H "` + x.Headers[i] + `: ` + x.Headers[i+1] + `"`
	}
	if x.Request != "" {
		for media := range op.RequestBody.Content {
			line += " \\\n  -H 'Content-Type: " + media + "' -d '" + x.Request + "'"
		}
	}
	return line
}

func docsProblems() []docsProblem {
	list := make([]docsProblem, len(problem.Kinds))
	for i, k := range problem.Kinds {
		list[i] = docsProblem{Name: k.Name, Type: k.TypeURI(), Title: k.Title, Doc: k.Doc, Status: k.Status}
	}
	return list
}

func renderPage(name string, data any) []byte {
	var page bytes.Buffer
	if err := docsTemplates.ExecuteTemplate(&page, name, data); err != nil {
		panic("the page " + name + " cannot be made: " + err.Error())
	}
	return page.Bytes()
}
