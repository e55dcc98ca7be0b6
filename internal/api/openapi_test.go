package api

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/events"
	"quotad/internal/webhooks"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
)

func TestDocumentHasExactlyTheRoutersRoutes(t *testing.T) {
	t.Parallel()
	for _, separate := range []bool{false, true} {
		s := New(Options{SeparateMetrics: separate, Options: serve.Options{Registry: prometheus.NewRegistry(), Wall: time.Now, Log: slog.New(slog.DiscardHandler)}})
		var served, documented []string
		check(t, chi.Walk(s.router, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			served = append(served, method+" "+pattern)
			return nil
		}))
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/openapi.json", nil))
		doc, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
		check(t, err)
		for path, item := range doc.Paths.Map() {
			for method := range item.Operations() {
				documented = append(documented, method+" "+path)
			}
		}
		slices.Sort(served)
		slices.Sort(documented)
		if !slices.Equal(served, documented) {
			t.Errorf("served:     %s\ndocumented: %s", served, documented)
		}
		if slices.Contains(served, "GET /metrics") == separate {
			t.Errorf("separate metrics %v: %s", separate, served)
		}
	}
}

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI("test"))
	check(t, err)
	check(t, doc.Validate(t.Context()))
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("OpenAPI %s", doc.OpenAPI)
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		for field, p := range doc.Components.Schemas[name].Value.Properties {
			if p.Value.Type.Is("null") || p.Value.Type.Is("array") && p.Value.Type.Includes("null") {
				t.Errorf("%s.%s may be null", name, field)
			}
			if p.Value.Default != nil {
				t.Errorf("%s.%s has a default, so generators make it a member that is always there", name, field)
			}
		}
	}
	requests, responses := reachable(doc)
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		s := doc.Components.Schemas[name].Value
		closed := s.AdditionalProperties.Has != nil && !*s.AdditionalProperties.Has
		switch {
		case requests[name] && responses[name]:
			t.Errorf("schema %s is of requests and of responses", name)
		case requests[name] && s.Type.Is("object") && !closed:
			t.Errorf("schema %s is of requests, and open", name)
		case responses[name] && closed:
			t.Errorf("schema %s is of responses, and closed: a later version could add nothing", name)
		}
		for field, p := range s.Properties {
			if responses[name] && p.Value.Enum != nil {
				t.Errorf("%s.%s is of responses, and has an enum that is closed", name, field)
			}
		}
	}
	for _, name := range events.Types {
		if doc.Webhooks[name] == nil {
			t.Errorf("the event %s is no webhook of the document", name)
		}
	}
	checkPropertiesAreDescribed(t)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.Summary == "" || op.OperationID == "" {
				t.Errorf("%s %s has the summary %q and the operationId %q", method, path, op.Summary, op.OperationID)
			}
			for _, p := range op.Parameters {
				if p.Value.Description == "" {
					t.Errorf("%s %s: the parameter %s in the %s has no words", method, path, p.Value.Name, p.Value.In)
				}
			}
			for status, r := range op.Responses.Map() {
				if r.Value.Headers["X-Request-Id"] == nil {
					t.Errorf("%s %s: %s does not name its headers", method, path, status)
				}
				_, isProblem := r.Value.Content["application/problem+json"]
				refusesBy200 := slices.Contains([]string{"hits.authorize", "hits.create", "reservations.create", "levels.put"}, op.OperationID)
				if isProblem != (status >= "400") && (!refusesBy200 || status != "200") {
					t.Errorf("%s %s: %s with %v", method, path, status, slices.Collect(maps.Keys(r.Value.Content)))
				}
			}
		}
	}
}

// reachable returns the names of the schemas that requests use, and of those that responses use.
func reachable(doc *openapi3.T) (requests, responses map[string]bool) {
	var visit func(found map[string]bool, s *openapi3.SchemaRef)
	visit = func(found map[string]bool, s *openapi3.SchemaRef) {
		if s == nil {
			return
		}
		if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
			if found[name] {
				return
			}
			found[name] = true
		}
		visit(found, s.Value.Items)
		visit(found, s.Value.AdditionalProperties.Schema)
		for _, one := range slices.Concat(s.Value.AnyOf, s.Value.OneOf, slices.Collect(maps.Values(s.Value.Properties))) {
			visit(found, one)
		}
	}
	requests, responses = map[string]bool{"ImportLine": true}, map[string]bool{}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			if op.RequestBody != nil {
				for _, media := range op.RequestBody.Value.Content {
					visit(requests, media.Schema)
				}
			}
			for _, r := range op.Responses.Map() {
				for _, media := range r.Value.Content {
					visit(responses, media.Schema)
				}
			}
		}
	}
	return requests, responses
}

// checkPropertiesAreDescribed names each property of a schema that has no description. It reads the text,
// because the loader puts the schema in place of a $ref and drops the description beside the $ref.
func checkPropertiesAreDescribed(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Description string `json:"description"`
				} `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	check(t, json.Unmarshal(OpenAPI("test"), &doc))
	for _, schema := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		properties := doc.Components.Schemas[schema].Properties
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if properties[name].Description == "" {
				t.Errorf("the property %s.%s has no description: add a doc tag to its field", schema, name)
			}
		}
	}
}

// TestDocumentHasClosedSets fails for a text of a response whose values are all known to the code, and not to the document.
func TestDocumentHasClosedSets(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI("test"))
	check(t, err)
	valuesOf := func(schema, property string) (words []string) {
		p := doc.Components.Schemas[schema].Value.Properties[property].Value
		if p.Type.Is("array") {
			p = p.Items.Value
		}
		known, _ := p.Extensions["x-extensible-enum"].([]any)
		for _, word := range known {
			words = append(words, word.(string))
		}
		return words
	}
	for property, want := range map[string][]string{
		"Health.status":        {"ok", string(serve.StateReady), string(serve.StateDegraded)},
		"EventData.kind":       {billing.KindPeriod, billing.KindOpening, billing.KindCreditNote, billing.CreditPromotional, billing.CreditPaid, billing.CreditCarried, billing.PaymentMoney, billing.PaymentCredits},
		"EventData.reason":     {webhooks.Gone, webhooks.Failing},
		"Webhook.disabled_for": {webhooks.Gone, webhooks.Failing},
		"Webhook.types":        events.Types,
		"Cap.reason":           {accounts.CapNoBound, accounts.CapNoPeriod},
		"Line.applied":         {billing.AppliedMinimum, billing.AppliedMaximum},
		"Refusal.type":         {respond.QuotaExceeded},
		"Books.disagreeing":    valuesOf("Check", "name"),
	} {
		schema, name, _ := strings.Cut(property, ".")
		if got := valuesOf(schema, name); !slices.Equal(got, want) {
			t.Errorf("%s: the document has %q, and the code %q", property, got, want)
		}
	}
	// A name that has values in one response has values in each. Two names are also those of free texts.
	_, responses := reachable(doc)
	closed := map[string]bool{}
	for pass := range 2 {
		for schema := range responses {
			for name, p := range doc.Components.Schemas[schema].Value.Properties {
				has, free := len(valuesOf(schema, name)) > 0, name == "name" || name == "reason"
				if closed[name] = closed[name] || has; pass == 1 && closed[name] && !has && !free && p.Value.Type.Includes("string") {
					t.Errorf("%s.%s has no values, and %s has values in another schema", schema, name, name)
				}
			}
		}
	}
}

// TestDocumentHasRefusals fails unless a client can tell a refusal by deny_status=200 from what is admitted, by the first media type.
func TestDocumentHasRefusals(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI("test"))
	check(t, err)
	for path, method := range map[string]string{"/v1/hits": "POST", "/v1/customers/{key}/levels/{meter}": "PUT"} {
		body := doc.Paths.Value(path).GetOperation(method).Responses.Status(200).Value.Content["application/json"].Schema.Value
		if len(body.OneOf) != 2 || body.OneOf[0].Ref != "#/components/schemas/Decision" || body.OneOf[1].Ref != "#/components/schemas/Refusal" {
			t.Errorf("%s %s answers 200 with %v", method, path, body.OneOf)
		}
	}
	for schema, allowed := range map[string]bool{"Decision": true, "Reservation": true, "Refusal": false} {
		if got := doc.Components.Schemas[schema].Value.Properties["allowed"].Value.Const; got != allowed {
			t.Errorf("%s.allowed is always %v, and the document has %v", schema, allowed, got)
		}
	}
}
