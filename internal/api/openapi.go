package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// document describes the routes as OpenAPI 3.1, from the same list that serves them.
// huma makes the schemas from the Go types; serving stays in this package, where 400 and
// 422 are told apart and integers stay exact.
func document(list []route, o Options) *huma.OpenAPI {
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaName)
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "quotad", Version: o.Version,
			Description: "Quotas and billing: whether a customer may do something now, and what was used. Unknown fields and parameters are refused. Times are RFC 3339 in UTC; waits are whole milliseconds in fields that end in _ms. A 4xx charges nothing.",
		},
		Components: &huma.Components{
			Schemas:         schemas,
			SecuritySchemes: map[string]*huma.SecurityScheme{"key": {Type: "http", Scheme: "bearer", Description: "A key of scope admin, backend or read."}},
		},
		Tags: []*huma.Tag{{Name: "Backends"}, {Name: "Meters"}, {Name: "Plans"}, {Name: "Customers"}, {Name: "Test clocks"}, {Name: "Keys"}, {Name: "Service"}},
	}
	if o.PublicURL != "" {
		doc.Servers = []*huma.Server{{URL: strings.TrimSuffix(o.PublicURL, "/")}}
	}
	for i := range list {
		doc.AddOperation(operation(&list[i], schemas))
	}
	describePlans(schemas.Map())
	for _, s := range schemas.Map() {
		arraysAreNotNull(s)
	}
	return doc
}

// arraysAreNotNull: huma takes Go's nil slices for nulls, which are never sent.
func arraysAreNotNull(s *huma.Schema) {
	for _, p := range s.Properties {
		if p.Type == huma.TypeArray {
			p.Nullable = false
		}
	}
}

func operation(rt *route, schemas huma.Registry) *huma.Operation {
	op := &huma.Operation{
		OperationID: rt.id, Method: rt.method, Path: rt.pattern, Summary: rt.summary, Description: rt.doc,
		Tags: []string{rt.tag}, Parameters: parameters(rt), Responses: map[string]*huma.Response{},
	}
	if rt.access == anyone {
		op.Security = []map[string][]string{}
	} else {
		op.Security = []map[string][]string{{"key": {}}}
		op.Description = strings.TrimSpace(op.Description + " " + rt.access.doc())
	}
	if rt.request != nil {
		media, example := cmp.Or(rt.requestMedia, "application/json"), examples[rt.id].request
		if rt.requestMedia != "" { // lines, of which each is as the schema says
			example, _, _ = strings.Cut(example, "\n")
		}
		op.RequestBody = &huma.RequestBody{Required: true, Content: content(media, schemas.Schema(rt.request, true, ""))}
		op.RequestBody.Content[media].Example = exampleOf(example)
	}
	for _, status := range rt.status {
		op.Responses[strconv.Itoa(status)] = success(rt, status, schemas)
		if x := examples[rt.id].response; x != "" && status != http.StatusNoContent {
			op.Responses[strconv.Itoa(status)].Content["application/json"].Example = exampleOf(x)
		}
	}
	problem := schemas.Schema(reflect.TypeFor[problemBody](), true, "")
	for _, k := range rt.allProblems() {
		addProblem(op.Responses, k, problem)
	}
	switch rt.response {
	case reflect.TypeFor[decisionBody](), reflect.TypeFor[reservationBody]():
		refusals(op.Responses, schemas)
	case reflect.TypeFor[commitBody]():
		op.Responses["409"].Content = content("application/problem+json", &huma.Schema{AnyOf: []*huma.Schema{
			schemas.Schema(reflect.TypeFor[noRoomBody](), true, ""), problem,
		}})
		addProblem(op.Responses, kindDoesNotFit, nil)
	}
	return op
}

func (a access) doc() string { return "Scope: " + a.scopes() + "." }

// scopes names the scopes that a route lets in; admin only where there is no other.
func (a access) scopes() string {
	switch a {
	case backends:
		return "backend"
	case readers:
		return "read"
	case everyScope:
		return "backend or read"
	}
	return "admin"
}

// parameters are those of the path, the query and the headers.
func parameters(rt *route) []*huma.Param {
	var params []*huma.Param
	for part := range strings.SplitSeq(rt.pattern, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			example := examples[rt.id].path
			switch name = strings.TrimSuffix(name, "}"); name {
			case "n":
				example = "1"
			case "limit":
				example = "hourly"
			}
			params = append(params, &huma.Param{
				Name: name, In: "path", Required: true, Description: pathDoc(rt, name),
				Schema: &huma.Schema{Type: huma.TypeString}, Example: example,
			})
		}
	}
	for _, p := range rt.params {
		params = append(params, &huma.Param{Name: p.name, In: "query", Required: p.required, Description: p.doc, Schema: p.schema()})
	}
	if rt.takesID {
		params = append(params, &huma.Param{
			Name: idempotencyHeader, In: "header", Description: "An id, as the member id of the body: 1 to 255 bytes, in double quotes as a structured field, or bare. Given both ways it must be the same.",
			Schema: &huma.Schema{Type: huma.TypeString},
		})
	}
	for _, k := range rt.problems {
		if k == kindPreconditionRequired {
			params = append(params, &huma.Param{
				Name: "If-Match", In: "header", Description: "The ETag of what is to be replaced; required when there is something.",
				Schema: &huma.Schema{Type: huma.TypeString},
			}, &huma.Param{
				Name: "If-None-Match", In: "header", Description: "Only *: write it if there is none yet, else 412.",
				Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"*"}},
			})
		}
	}
	return params
}

// pathDoc says what a parameter of the path is.
func pathDoc(rt *route, name string) string {
	switch {
	case name == "n":
		return "The version's number."
	case name == "limit":
		return "The limit's name, as the plan has it."
	case strings.HasPrefix(rt.pattern, reservationsPattern):
		return "The reservation's id, as its answer had it."
	case name == "id":
		return "The key's id, as GET /v1/keys shows it."
	case name == "name":
		return "The last part of the problem's type."
	case strings.HasPrefix(rt.pattern, "/v1/customers/"):
		return "The customer's key, percent-encoded."
	case strings.HasPrefix(rt.pattern, "/v1/meters/"):
		return "The meter's key."
	case strings.HasPrefix(rt.pattern, "/v1/test-clocks/"):
		return "The test clock's key."
	}
	return "The plan's key."
}

func (p *param) schema() *huma.Schema {
	s := &huma.Schema{Type: p.kind}
	switch p.kind {
	case "date-time":
		s.Type, s.Format = huma.TypeString, p.kind
	case "integer":
		least, most := 1.0, float64(p.most)
		s.Minimum, s.Maximum = &least, &most
	}
	for _, value := range p.enum {
		s.Enum = append(s.Enum, value)
	}
	return s
}

// exampleOf is an example as JSON; nil when there is none.
func exampleOf(text string) any {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

func content(media string, s *huma.Schema) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{media: {Schema: s}}
}

func success(rt *route, status int, schemas huma.Registry) *huma.Response {
	response := &huma.Response{Description: http.StatusText(status)}
	switch {
	case status == http.StatusNoContent: // beside a status that has a body
	case rt.response != nil:
		response.Content = content("application/json", schemas.Schema(rt.response, true, ""))
	case rt.media == "application/json":
		response.Content = content(rt.media, &huma.Schema{Type: huma.TypeObject})
	case rt.media != "":
		response.Content = content(rt.media, &huma.Schema{Type: huma.TypeString})
	}
	return response
}

// allProblems are the route's own and those that its sort of route has.
func (rt *route) allProblems() []*kind {
	list := append([]*kind{}, rt.problems...)
	if rt.access != anyone {
		list = append(list, kindUnauthorized, kindWrongScope, kindBusy, kindUnavailable, kindNoSession)
	}
	if rt.method != http.MethodGet {
		list = append(list, kindOutcomeUnknown)
	}
	if rt.request != nil {
		list = append(list, kindNotJSON, kindTimeout, kindTooLarge, kindMediaType, kindInvalid)
	}
	return append(list, kindInvalid, kindInternal)
}

// addProblem documents a problem; kinds of one status share a response.
func addProblem(responses map[string]*huma.Response, k *kind, schema *huma.Schema) {
	status := strconv.Itoa(k.status)
	about := fmt.Sprintf("%s (%s)", k.title, k.typeURI())
	r := responses[status]
	if r == nil {
		responses[status] = &huma.Response{Description: about, Content: content("application/problem+json", schema)}
	} else if !strings.Contains(r.Description, about) {
		r.Description += "; " + about
	}
}

// refusals documents what a refused hit or reservation answers: 429, or as deny_status says.
func refusals(responses map[string]*huma.Response, schemas huma.Registry) {
	refusal := schemas.Schema(reflect.TypeFor[refusalBody](), true, "")
	problem := schemas.Schema(reflect.TypeFor[problemBody](), true, "")
	responses["429"] = &huma.Response{Description: "Quota exceeded (" + quotaExceeded + ")", Content: content("application/problem+json", refusal)}
	responses["429"].Content["application/problem+json"].Example = exampleOf(refusalExample)
	if admitted := responses["200"]; admitted != nil {
		admitted.Content["application/problem+json"] = &huma.MediaType{Schema: refusal}
		admitted.Description = "Admitted; or refused, with deny_status=200."
	} else {
		responses["200"] = &huma.Response{Description: "Refused, with deny_status=200.", Content: content("application/problem+json", refusal)}
	}
	responses["403"].Content = content("application/problem+json", &huma.Schema{AnyOf: []*huma.Schema{refusal, problem}})
	responses["403"].Description += "; or refused, with deny_status=403"
}

// renderOpenAPI writes the document, its members in a fixed order and indented.
func renderOpenAPI(doc *huma.OpenAPI) []byte {
	raw, err := doc.MarshalJSON()
	if err != nil {
		panic("api: the OpenAPI document cannot be written: " + err.Error())
	}
	v := jsontext.Value(raw)
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		panic("api: the OpenAPI document is not JSON: " + err.Error())
	}
	return append(v, '\n')
}

// OpenAPI is the document that /openapi.json serves, for `make generate`.
func OpenAPI(version string) []byte {
	o := Options{Version: version}
	return renderOpenAPI(document(routes(false), o))
}

func (s *Server) serveOpenAPI(w http.ResponseWriter, _ *http.Request, _ query) int {
	return writeBody(w, http.StatusOK, plainJSON, s.openAPI)
}

// schemaName turns a Go type's name into the document's: meterBody is Meter, and
// listBody[…meterBody] is MeterList.
func schemaName(t reflect.Type, hint string) string {
	name := t.Name()
	if t.Kind() == reflect.Pointer {
		name = t.Elem().Name()
	}
	if inner, ok := strings.CutPrefix(name, "listBody["); ok {
		inner = strings.TrimSuffix(inner[strings.LastIndexByte(inner, '.')+1:], "]")
		return capital(inner) + "List"
	}
	if name == "" {
		name = hint
	}
	return capital(name)
}

func capital(name string) string {
	for _, end := range []string{"Body", "JSON"} {
		name = strings.TrimSuffix(name, end)
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// describePlans adds to the schemas what the types cannot say: what features may be, and
// that a plan that is shown has everything.
func describePlans(schemas map[string]*huma.Schema) {
	for _, name := range []string{"PlanInput", "Plan", "CustomerRequest", "Customer", "Quota"} {
		schemas[name].Properties["features"].AdditionalProperties = &huma.Schema{
			Extensions: map[string]any{"type": []string{"boolean", "number", "string"}},
		}
	}
	shown := schemas["Plan"]
	shown.Required = nil
	for name := range shown.Properties {
		shown.Required = append(shown.Required, name)
	}
	slices.Sort(shown.Required)
}
