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

	"quotad/internal/api/serve"

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
		s := doc.Components.Schemas[name].Value
		closed := s.AdditionalProperties.Has != nil && !*s.AdditionalProperties.Has
		if s.Type.Is("object") && !closed {
			t.Errorf("schema %s is open", name)
		}
		for field, p := range s.Properties {
			if p.Value.Type.Is("null") || p.Value.Type.Is("array") && p.Value.Type.Includes("null") {
				t.Errorf("%s.%s may be null", name, field)
			}
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
				_, isProblem := r.Value.Content["application/problem+json"]
				if isProblem != (status >= "400") && (!slices.Contains([]string{"authorize", "hit", "reserve", "putLevel"}, op.OperationID) || status != "200") {
					t.Errorf("%s %s: %s with %v", method, path, status, slices.Collect(maps.Keys(r.Value.Content)))
				}
			}
		}
	}
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
