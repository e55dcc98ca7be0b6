package apidoc

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"quotad/client"
	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
)

// Document describes operations for programs and for people.
type Document struct {
	list    []Operation
	openAPI *huma.OpenAPI
}

// New describes operations in their order and the events of webhooks. version is the program's version.
// publicURL is the URL at which the operations are served; it may be empty.
func New(list []Operation, events []string, version, publicURL string) *Document {
	return &Document{list: list, openAPI: openAPI(list, events, version, publicURL)}
}

// OpenAPI returns the indented OpenAPI document with its members in a fixed order.
func (d *Document) OpenAPI() []byte {
	raw, err := d.openAPI.MarshalJSON()
	if err != nil {
		panic("the OpenAPI document cannot be written: " + err.Error())
	}
	v := jsontext.Value(raw)
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		panic("the OpenAPI document is not JSON: " + err.Error())
	}
	return append(v, '\n')
}

const schemasAt = "#/components/schemas/"

// openAPI describes operations as OpenAPI 3.1. huma only generates the schemas from the Go types. It serves no
// requests, because it neither distinguishes 400 from 422 nor keeps integers exact.
func openAPI(list []Operation, events []string, version, publicURL string) *huma.OpenAPI {
	schemas := huma.NewMapRegistry(schemasAt, schemaName)
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "quotad", Version: version,
			Description: Texts["info"],
		},
		Servers: []*huma.Server{{URL: cmp.Or(strings.TrimSuffix(publicURL, "/"), "/"), Description: "The quotad that serves this document."}},
		Components: &huma.Components{
			Schemas:         schemas,
			Headers:         headers,
			SecuritySchemes: map[string]*huma.SecurityScheme{"key": {Type: "http", Scheme: "bearer", Description: Texts["key"]}},
		},
		Tags: []*huma.Tag{
			{Name: "Backends", Description: "What a backend asks before and while a customer uses something."},
			{Name: "Meters", Description: "What is counted."},
			{Name: "Plans", Description: "Limits and prices that customers are on, in versions."},
			{Name: "Customers", Description: "Who is limited and billed."},
			{Name: "Billing", Description: "Accounts, credits, invoices and payments."},
			{Name: "Portal", Description: "The pages that customers see."},
			{Name: "Test clocks", Description: "Clocks that are set by hand, to try what the future brings."},
			{Name: "Keys", Description: "API keys and their scopes."},
			{Name: "Audit", Description: "Who changed what, and when."},
			{Name: "Events", Description: "What happened, to be read or sent to webhooks."},
			{Name: "Service", Description: "Health, metrics and documentation."},
		},
	}
	describeResponses(doc, list, schemas)
	openResponses(schemas.Map(), events)
	describeRequests(doc, list, schemas)
	doc.Webhooks = webhooks(events)
	for _, s := range schemas.Map() {
		arraysAreNotNull(s)
	}
	return doc
}

// describeResponses adds the operations to the document without their request bodies.
func describeResponses(doc *huma.OpenAPI, list []Operation, schemas huma.Registry) {
	hasETag := versioned(list)
	for i := range list {
		op := describe(&list[i], schemas)
		describeHeaders(op, &list[i], hasETag(&list[i]))
		doc.AddOperation(op)
	}
	describePlans(schemas.Map())
	describeAudit(schemas.Map()["Audit"])
	orNull(schemas.Map()["Line"], "level")
	orNull(schemas.Map()["Line"], "part")
	schemas.Map()["TierLine"].Properties["quantity"] = &huma.Schema{
		AnyOf:       []*huma.Schema{{Type: huma.TypeInteger, Format: "int64"}, {Type: huma.TypeString, Pattern: `^[0-9]+\.[0-9]{6}$`}},
		Description: "The units in the tier. Of a level meter, the number is a string with 6 digits after the point.",
	}
	orNull(schemas.Map()["Preview"], "invoice")
	orNull(schemas.Map()["Preview"], "upcoming")
	describeEvent(schemas)
}

// arraysAreNotNull removes null from the types of arrays. huma derives null from Go's nil slices, but quotad
// never sends null for an array.
func arraysAreNotNull(s *huma.Schema) {
	for _, p := range s.Properties {
		if p.Type == huma.TypeArray {
			p.Nullable = false
		}
	}
}

// describe returns one operation of the document.
func describe(of *Operation, schemas huma.Registry) *huma.Operation {
	op := &huma.Operation{
		OperationID: of.ID, Method: of.Method, Path: of.Pattern, Summary: of.Summary, Description: Texts[of.ID],
		Tags: []string{of.Tag}, Parameters: parameters(of), Responses: map[string]*huma.Response{},
	}
	if of.Access == Anyone {
		op.Security = []map[string][]string{}
	} else {
		op.Security = []map[string][]string{{"key": {}}}
		op.Description = strings.TrimSpace(op.Description + "\n\n" + of.Access.doc())
	}
	for _, status := range of.Status {
		op.Responses[strconv.Itoa(status)] = success(of, status, schemas)
		if x := Examples[of.ID].Response; x != "" && status != http.StatusNoContent {
			op.Responses[strconv.Itoa(status)].Content["application/json"].Example = exampleOf(x)
		}
	}
	other := schemas.Schema(reflect.TypeFor[client.Problem](), true, "")
	for _, k := range of.allProblems() {
		addProblem(op.Responses, k, other)
	}
	if of.Refusable {
		refusals(op.Responses, of, schemas)
	}
	if of.DoesNotFit != nil {
		own := schemas.Schema(of.DoesNotFit, true, "")
		op.Responses["409"].Content = content("application/problem+json", orProblem(of, http.StatusConflict, own, problem.KindDoesNotFit, other))
		addProblem(op.Responses, problem.KindDoesNotFit, nil)
	}
	return op
}

// parameters returns the parameters of the path, the query and the headers.
func parameters(of *Operation) []*huma.Param {
	var params []*huma.Param
	for part := range strings.SplitSeq(of.Pattern, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			example := Examples[of.ID].Path
			switch name, _, _ = strings.Cut(name, "}"); name {
			case "n":
				example = "1"
			case "limit":
				example = "hourly"
			case "meter":
				example = "requests"
			}
			params = append(params, &huma.Param{
				Name: name, In: "path", Required: true, Description: pathDoc(of, name),
				Schema: &huma.Schema{Type: huma.TypeString}, Example: example,
			})
		}
	}
	for _, p := range of.Params {
		params = append(params, &huma.Param{Name: p.Name, In: "query", Required: p.Required, Description: p.Doc, Schema: p.schema()})
	}
	for _, p := range of.Headers {
		params = append(params, &huma.Param{Name: p.Name, In: "header", Required: p.Required, Description: p.Doc, Schema: p.schema()})
	}
	if of.IDHeader != "" {
		params = append(params, &huma.Param{
			Name: of.IDHeader, In: "header", Description: Texts["idHeader"],
			Schema: &huma.Schema{Type: huma.TypeString},
		})
	}
	if slices.Contains(of.Problems, problem.KindPrecondition) {
		doc := "The `ETag` of what the request replaces."
		if slices.Contains(of.Problems, problem.KindPreconditionRequired) {
			doc += " Required when there is something to replace."
		}
		params = append(params, &huma.Param{
			Name: "If-Match", In: "header", Description: doc,
			Schema: &huma.Schema{Type: huma.TypeString},
		}, &huma.Param{
			Name: "If-None-Match", In: "header", Description: "Only `*`: the request writes if there is nothing of this key yet. Otherwise the answer is a 412.",
			Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"*"}},
		})
	}
	return params
}

// pathDoc returns the description of a path parameter. A test fails for a parameter without a description.
func pathDoc(of *Operation, name string) string {
	switch {
	case strings.HasPrefix(of.Pattern, "/v1/invoices/{id}/payments/") && name == "n":
		return "The payment's `n`."
	case strings.HasPrefix(of.Pattern, "/v1/invoices/") && name == "n":
		return "The line's number."
	case strings.HasPrefix(of.Pattern, "/v1/invoices/"):
		return "The invoice's id."
	case strings.HasPrefix(of.Pattern, "/v1/plans/") && name == "n":
		return "The version's number."
	case name == "limit":
		return "The limit's name, as in the plan."
	case name == "meter", strings.HasPrefix(of.Pattern, "/v1/meters/"):
		return "The meter's key."
	case strings.HasPrefix(of.Pattern, "/v1/sellers/"):
		return "The seller's key. There always is one of the key `default`."
	case strings.HasPrefix(of.Pattern, "/v1/reservations/"):
		return "The reservation's id, from the answer that made the reservation."
	case strings.HasPrefix(of.Pattern, "/v1/keys/"):
		return "The key's id, as GET /v1/keys shows it."
	case strings.HasPrefix(of.Pattern, "/v1/webhooks/"):
		return "The webhook's id, as GET /v1/webhooks shows it."
	case strings.HasPrefix(of.Pattern, "/problems/"):
		return "The last part of the problem's `type`."
	case strings.HasPrefix(of.Pattern, "/v1/customers/{key}/credits/") && name == "id":
		return "The credit's id, percent-encoded."
	case strings.HasPrefix(of.Pattern, "/v1/customers/"):
		return "The customer's key, percent-encoded."
	case strings.HasPrefix(of.Pattern, "/v1/test-clocks/"):
		return "The test clock's key."
	case strings.HasPrefix(of.Pattern, "/v1/plans/"):
		return "The plan's key."
	}
	return ""
}

// exampleOf returns an example as JSON, or nil if there is no example.
func exampleOf(text string) any {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

func content(media string, s *huma.Schema) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{media: {Schema: s}}
}

func success(of *Operation, status int, schemas huma.Registry) *huma.Response {
	response := &huma.Response{Description: http.StatusText(status)}
	switch {
	case status == http.StatusNoContent: // the operation has another success status with a body
	case of.Response != nil:
		schema := schemas.Schema(of.Response, true, "")
		if of.Preview != nil && status == http.StatusOK {
			schema = &huma.Schema{
				OneOf: []*huma.Schema{schema, schemas.Schema(of.Preview, true, "")},
				// There is no discriminator, because a discriminator needs a member that both schemas have.
				Description: "With `preview=true` a Line, which has the member n. Otherwise an Adjustment, which has no n.",
			}
		}
		response.Content = content("application/json", schema)
	case of.Media == "application/json":
		response.Content = content(of.Media, &huma.Schema{Type: huma.TypeObject})
	case of.Media != "":
		response.Content = content(of.Media, &huma.Schema{Type: huma.TypeString})
	}
	return response
}

// addProblem documents a problem. Problems with the same status share one response.
func addProblem(responses map[string]*huma.Response, k *problem.Kind, schema *huma.Schema) {
	status := strconv.Itoa(k.Status)
	about := fmt.Sprintf("%s (%s)", k.Title, k.TypeURI())
	r := responses[status]
	if r == nil {
		responses[status] = &huma.Response{Description: about, Content: content("application/problem+json", schema)}
	} else if !strings.Contains(r.Description, about) {
		r.Description = also(r.Description, about)
	}
}

// also adds a case to the description of a response. Two or more cases become a list.
func also(description, about string) string {
	if !strings.HasPrefix(description, "- ") {
		description = "- " + description
	}
	return description + "\n- " + about
}

// refusals documents the response for a refused hit or reservation, which is 429 or the status in deny_status.
func refusals(responses map[string]*huma.Response, of *Operation, schemas huma.Registry) {
	refusal := schemas.Schema(reflect.TypeFor[client.Refusal](), true, "")
	other := schemas.Schema(reflect.TypeFor[client.Problem](), true, "")
	refused := func(status int) map[string]*huma.MediaType {
		return content("application/problem+json", orProblem(of, status, refusal, problem.KindQuotaExceeded, other))
	}
	responses["429"].Content = refused(http.StatusTooManyRequests)
	responses["429"].Description = also(responses["429"].Description, "Quota exceeded ("+respond.QuotaExceeded+")")
	responses["429"].Content["application/problem+json"].Example = exampleOf(refusalExample)
	if admitted := responses["200"]; admitted != nil {
		if body := admitted.Content["application/json"]; body != nil {
			// Some generators read only this media type of a response. The member allowed distinguishes the
			// bodies.
			body.Schema = &huma.Schema{OneOf: []*huma.Schema{body.Schema, refusal}}
		}
		maps.Copy(admitted.Content, refused(http.StatusOK))
		admitted.Description = also("Admitted", "Refused, with `deny_status=200`")
	} else {
		responses["200"] = &huma.Response{Description: "Refused, with `deny_status=200`", Content: refused(http.StatusOK)}
	}
	responses["403"].Content = refused(http.StatusForbidden)
	responses["403"].Description = also(responses["403"].Description, "Refused, with `deny_status=403`")
}

// orProblem returns the schema of a response that is either a problem with its own schema or another problem
// with the same status, if the operation has one. The member type distinguishes the two.
func orProblem(of *Operation, status int, own *huma.Schema, kind *problem.Kind, other *huma.Schema) *huma.Schema {
	by := &huma.Discriminator{PropertyName: "type", Mapping: map[string]string{kind.TypeURI(): own.Ref}}
	for _, k := range of.allProblems() {
		if k.Status == status {
			by.Mapping[k.TypeURI()] = other.Ref
		}
	}
	for _, k := range of.RefusedBy {
		by.Mapping[k.TypeURI()] = other.Ref
	}
	if len(by.Mapping) == 1 {
		return own
	}
	return &huma.Schema{AnyOf: []*huma.Schema{own, other}, Discriminator: by}
}

// schemaName returns the document's name for a Go type: Meter for meterBody, and MeterList for List[…Meter].
func schemaName(t reflect.Type, hint string) string {
	name := t.Name()
	if t.Kind() == reflect.Pointer {
		name = t.Elem().Name()
	}
	if inner, ok := strings.CutPrefix(name, "List["); ok {
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

// describeAudit adds to the schema of audit entries that the changed resource is an object or null, which the Go
// type cannot express.
func describeAudit(audit *huma.Schema) {
	anything := &huma.Schema{AnyOf: []*huma.Schema{
		{Type: huma.TypeString, Nullable: true},
		{Type: huma.TypeNumber},
		{Type: huma.TypeBoolean},
		{Type: huma.TypeArray, Items: &huma.Schema{}},
		{Type: huma.TypeObject, AdditionalProperties: true},
	}}
	for _, name := range []string{"before", "after"} {
		changed := audit.Properties[name]
		changed.Type, changed.Nullable, changed.AdditionalProperties = huma.TypeObject, true, anything
	}
}

// orNull adds to a schema that a member is an object or null, which the Go type cannot express.
func orNull(of *huma.Schema, name string) {
	is := of.Properties[name]
	of.Properties[name] = &huma.Schema{
		AnyOf:       []*huma.Schema{{Ref: is.Ref}, {Type: "null"}},
		Description: is.Description,
	}
}

// describeEvent adds the contents of data to the schema of events, which the Go type cannot express.
func describeEvent(schemas huma.Registry) {
	event, data := schemas.Map()["Event"], schemas.Schema(reflect.TypeFor[client.EventData](), true, "")
	data.Description = event.Properties["data"].Description
	event.Properties["data"] = data
}

// describePlans marks all members of a plan in a response as required, which the Go type cannot express.
func describePlans(schemas map[string]*huma.Schema) {
	shown := schemas["Plan"]
	shown.Required = nil
	for name := range shown.Properties {
		shown.Required = append(shown.Required, name)
	}
	slices.Sort(shown.Required)
}
