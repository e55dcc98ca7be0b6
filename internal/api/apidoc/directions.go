package apidoc

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
)

// Requests and responses have different rules. A request with a member that quotad does not know is refused, so
// the schemas of requests are closed. A later version may add members and values to a response, so the schemas
// of responses are open. A type that is used in both directions has two schemas, and the name of the request
// schema ends in Input.

// openResponses opens the schemas of responses and lists the values that their texts may have in this version.
func openResponses(schemas map[string]*huma.Schema, events []string) {
	for _, name := range []string{"LimitState", "QuotaLimit", "PlayLimit"} {
		for _, property := range []string{"algorithm", "mode"} {
			schemas[name].Properties[property].Enum = slices.Clone(schemas["Limit"].Properties[property].Enum)
		}
	}
	for _, name := range []string{"Event", "Delivery"} {
		schemas[name].Properties["type"].Enum = values(events)
	}
	data, kind := schemas["EventData"].Properties, func(of string) []any { return schemas[of].Properties["kind"].Enum }
	data["status"].Enum = slices.Clone(schemas["Invoice"].Properties["status"].Enum)
	data["kind"].Enum = slices.Concat(kind("Invoice"), kind("Credit"), kind("Payment"))
	schemas["Books"].Properties["disagreeing"].Items.Enum = slices.Clone(schemas["Check"].Properties["name"].Enum)
	for _, name := range []string{"Webhook", "NewWebhook"} {
		schemas[name].Properties["types"].Items.Enum = values(events)
	}
	schemas["Refusal"].Properties["type"].Enum = values([]string{respond.QuotaExceeded})
	schemas["NoRoom"].Properties["type"].Enum = values([]string{problem.KindDoesNotFit.TypeURI()})
	for name, allowed := range map[string]bool{"Decision": true, "Reservation": true, "Refusal": false} {
		extend(schemas[name].Properties["allowed"], literal, allowed)
	}
	var types []string
	for _, k := range problem.Kinds {
		types = append(types, k.TypeURI())
	}
	for _, name := range []string{"Problem", "ImportError"} {
		schemas[name].Properties["type"].Enum = values(types)
	}
	for _, s := range schemas {
		open(s)
	}
}

func values(words []string) (all []any) {
	for _, word := range words {
		all = append(all, word)
	}
	return all
}

// open admits unknown members and unknown enum values. It lists the known values in x-extensible-enum, so that
// generators do not create a closed type.
func open(s *huma.Schema) {
	if s.AdditionalProperties == false {
		s.AdditionalProperties = nil
	}
	if len(s.Enum) > 0 {
		extend(s, extensibleEnum, s.Enum)
		s.Enum = nil
	}
	each(s, open)
	s.Default = nil
	describeFeatures(s)
}

// Members of schemas that huma does not have.
const (
	extensibleEnum = "x-extensible-enum"
	literal        = "const"
)

func extend(s *huma.Schema, name string, value any) {
	if s.Extensions == nil {
		s.Extensions = map[string]any{}
	}
	s.Extensions[name] = value
}

// each calls do for every schema that is nested in a schema.
func each(s *huma.Schema, do func(*huma.Schema)) {
	for _, p := range s.Properties {
		do(p)
	}
	for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
		do(one)
	}
	if s.Items != nil {
		do(s.Items)
	}
	if inner, ok := s.AdditionalProperties.(*huma.Schema); ok {
		do(inner)
	}
}

// describeFeatures adds the types that a feature may have, which the Go type cannot express.
func describeFeatures(s *huma.Schema) {
	if features := s.Properties["features"]; features != nil {
		features.AdditionalProperties = &huma.Schema{AnyOf: []*huma.Schema{
			{Type: huma.TypeBoolean}, {Type: huma.TypeNumber}, {Type: huma.TypeString},
		}}
	}
}

// describeRequests adds the request bodies to the operations of the document.
func describeRequests(doc *huma.OpenAPI, list []Operation, schemas huma.Registry) {
	requests := huma.NewMapRegistry(schemasAt, func(t reflect.Type, hint string) string {
		name := schemaName(t, hint)
		if schemas.Map()[name] != nil {
			name += "Input"
		}
		return name
	})
	for i := range list {
		of := &list[i]
		if of.Request == nil {
			continue
		}
		body := requests.Schema(of.Request, true, "")
		media, example := cmp.Or(of.RequestMedia, "application/json"), exampleOf(Examples[of.ID].Request)
		if of.RequestMedia != "" {
			line := body.Ref
			body = &huma.Schema{Type: huma.TypeString, Description: "Lines of JSON, of which each is as contentSchema says."}
			extend(body, "contentMediaType", "application/json")
			extend(body, "contentSchema", map[string]any{"$ref": line})
			example = Examples[of.ID].Request
		}
		op := operation(doc.Paths[of.Pattern], of.Method)
		op.RequestBody = &huma.RequestBody{Required: true, Content: content(media, body)}
		op.RequestBody.Content[media].Example = example
	}
	for name, s := range requests.Map() {
		tellDefaults(s)
		schemas.Map()[name] = s
	}
}

// tellDefaults moves defaults into descriptions, because generators treat a member with a default as always
// present.
func tellDefaults(s *huma.Schema) {
	if s.Default != nil {
		value := reflect.Indirect(reflect.ValueOf(s.Default)) // a pointer's value, because the schema has the field's type
		s.Description = strings.TrimSpace(fmt.Sprintf("%s Default: `%v`.", s.Description, value))
		s.Default = nil
	}
	describeFeatures(s)
	each(s, tellDefaults)
}

// operation returns the operation of a method.
func operation(of *huma.PathItem, method string) *huma.Operation {
	return map[string]*huma.Operation{
		"GET": of.Get, "PUT": of.Put, "POST": of.Post, "DELETE": of.Delete, "PATCH": of.Patch,
	}[method]
}

// webhooks describes the requests that quotad sends, by event type.
func webhooks(events []string) map[string]*huma.PathItem {
	all := map[string]*huma.PathItem{}
	for _, name := range events {
		all[name] = &huma.PathItem{Post: &huma.Operation{
			OperationID: "webhooks." + name, Method: "POST", Tags: []string{"Events"},
			Summary:     "The event " + name + ", sent to your webhook",
			Description: Texts["webhook"],
			Security:    []map[string][]string{},
			Parameters: []*huma.Param{
				sent("webhook-id", "The event's id. Leave out an event whose id you have had.", textOf("4711")),
				sent("webhook-timestamp", "The Unix time of this attempt, in seconds.", wholeOf(1795154400)),
				sent("webhook-signature", "The signatures, separated by spaces, as Standard Webhooks defines them.", textOf("v1,K5oZfzN95Z9UVu1EsfQ=")),
			},
			RequestBody: &huma.RequestBody{Required: true, Content: content("application/json", &huma.Schema{Ref: schemasAt + "Event"})},
			Responses: map[string]*huma.Response{
				"2XX": {Description: "The event is accepted."},
				"410": {Description: "The webhook is disabled."},
			},
		}}
	}
	return all
}

func sent(name, doc string, s *huma.Schema) *huma.Param {
	return &huma.Param{Name: name, In: "header", Required: true, Description: doc, Schema: s}
}
