package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// emptied has a body for each member of a request that is a time or an id: all but that member is right, and
// the member is empty. What an import does is said by its lines.
var emptied = map[string]string{
	"POST /v1/hits id":                                     `{"customer":"acme","meter":"requests","id":""}`,
	"POST /v1/refunds hit":                                 `{"customer":"acme","meter":"requests","cost":1,"id":"i","hit":""}`,
	"POST /v1/refunds id":                                  `{"customer":"acme","meter":"requests","cost":1,"id":""}`,
	"POST /v1/reservations id":                             `{"customer":"acme","meter":"requests","ttl_ms":1000,"id":""}`,
	"PUT /v1/test-clocks/{key} now":                        `{"now":""}`,
	"PUT /v1/customers/{key} test_clock":                   `{"name":"Acme","plan":"pro","test_clock":""}`,
	"POST /v1/keys expires_at":                             `{"name":"k","scope":"read","expires_at":""}`,
	"POST /v1/webhooks/{id}/replay from":                   `{"from":""}`,
	"POST /v1/webhooks/{id}/replay to":                     `{"from":"2026-01-01T00:00:00Z","to":""}`,
	"POST /v1/invoices/{id}/pay id":                        `{"id":""}`,
	"POST /v1/customers/{key}/charges id":                  `{"description":"d","amount_minor":1,"currency":"USD","id":""}`,
	"POST /v1/customers/{key}/credits id":                  `{"amount_minor":1,"currency":"USD","id":""}`,
	"POST /v1/customers/{key}/preview ends_at":             `{"ends_at":""}`,
	"POST /v1/plans/{key}/draft/compare customer":          `{"customer":""}`,
	"PUT /v1/customers/{key} billing_anchor":               `{"name":"Acme","plan":"pro","billing_anchor":""}`,
	"PUT /v1/customers/{key}/overrides/{limit} expires_at": `{"limit":7,"expires_at":""}`,
	"PUT /v1/customers/{key}/billing starts_at":            `{"starts_at":""}`,
	"PUT /v1/customers/{key}/billing trial_ends_at":        `{"trial_ends_at":""}`,
	"PUT /v1/customers/{key}/billing ends_at":              `{"ends_at":""}`,
	"POST /v1/customers/{key}/credits expires_at":          `{"amount_minor":1,"currency":"USD","id":"i","expires_at":""}`,
	"POST /v1/customers/{key}/credits/{id}/withdraw id":    `{"reason":"r","id":""}`,
	"POST /v1/customers/{key}/adjustments at":              `{"meter":"requests","cost":1,"reason":"r","id":"i","at":""}`,
	"POST /v1/customers/{key}/adjustments id":              `{"meter":"requests","cost":1,"reason":"r","id":""}`,
	"POST /v1/invoices/{id}/credit-notes id":               `{"lines":[{"n":1,"amount_minor":1}],"to":"outside","reason":"r","id":""}`,
	"POST /v1/invoices/{id}/payments/{n}/reverse id":       `{"reason":"r","id":""}`,
}

// isTimeOrID reports whether a member or a parameter is an instant, a wall clock, or an id or key of
// something that is chosen by it.
func isTimeOrID(name string) bool {
	return strings.HasSuffix(name, "_at") || slices.Contains([]string{"id", "hit", "at", "now", "from", "billing_anchor", "test_clock", "after", "actor"}, name)
}

// TestEmptyTimesAndIDs: a time or an id that is there and empty is 422, wherever one is taken. It is never
// taken for one that was left out.
func TestEmptyTimesAndIDs(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(201, "PUT", "/v1/plans/pro/draft", `{"name":"Pro","currency":"USD","interval":"month"}`)
	hook := n.want(201, "POST", "/v1/webhooks", `{"url":"https://example.com/hook"}`).json["id"].(string)
	before := n.stored()
	member := func(operation, name string, schema *openapi3.Schema) {
		also := map[string][]string{"POST /v1/webhooks/{id}/replay": {"to"}, "POST /v1/plans/{key}/draft/compare": {"customer"}}
		if !isTimeOrID(name) && schema.Format != "date-time" && !slices.Contains(also[operation], name) {
			return
		}
		body, known := emptied[operation+" "+name]
		if !known {
			t.Errorf("%s takes %s: this test has no body for it", operation, name)
			return
		}
		method, pattern, _ := strings.Cut(operation, " ")
		path := strings.NewReplacer("/plans/{key}", "/plans/pro", "/webhooks/{id}", "/webhooks/"+hook, "/customers/{key}/", "/customers/acme/", "{key}",
			"new", "{limit}", "hourly", "{n}", "1", "{id}", "none").Replace(pattern)
		if got := n.faultOf(method, path, body); got != "422 "+name {
			t.Errorf("%s with %s: %s", operation, body, got)
		}
	}
	for pattern, item := range n.doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.RequestBody != nil && op.RequestBody.Value.Content["application/json"] != nil {
				for name, schema := range op.RequestBody.Value.Content["application/json"].Schema.Value.Properties {
					member(method+" "+pattern, name, schema.Value)
				}
			}
			for _, p := range op.Parameters {
				given := p.Value
				if given.In != "query" || !isTimeOrID(given.Name) && !slices.Contains([]string{"to", "customer", "meter", "status"}, given.Name) {
					continue
				}
				path := strings.NewReplacer("{key}", "acme", "{id}", "none", "{n}", "1").Replace(pattern) + "?"
				if strings.HasSuffix(pattern, "/usage") && given.Name != "meter" {
					path += "meter=requests&"
				}
				got := n.faultOf(method, path+given.Name+"=", "") // a gateway's request has no customer, too
				if !strings.HasPrefix(got, "422 ") || !slices.Contains(strings.Fields(got), given.Name) {
					t.Errorf("%s %s?%s=: %s", method, pattern, given.Name, got)
				}
			}
		}
	}
	for _, line := range []string{
		`{"id":"","customer":"acme","meter":"requests","cost":1,"at":"2026-01-01T00:00:00Z"}`, `{"id":"i","customer":"acme","meter":"requests","cost":1,"at":""}`,
	} {
		if got := n.want(200, "POST", "/v1/imports", line, "Content-Type", "application/x-ndjson"); got.json["failed"] != 1. {
			t.Errorf("%s: %s", line, got.text)
		}
	}
	for _, c := range [][2]string{
		{"/v1/hits", `{"customer":"acme","meter":"requests"}`}, {"/v1/customers/acme/adjustments", `{"meter":"requests","cost":1,"reason":"r"}`},
	} {
		n.want(422, "POST", c[0], c[1], "Idempotency-Key", "")
	}
	n.want(422, "GET", "/v1/authorize?meter=requests&id=header", "", "X-Quotad-Customer", "acme", "X-Quotad-Id", "")
	if after := n.stored(); after != before {
		t.Errorf("something was written: %s, before: %s", after, before)
	}
}
