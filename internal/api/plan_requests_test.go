package api

import "testing"

// A customer's request for a plan is told once in 24 hours for each plan, by the customer's clock, and
// changes nothing. What is refused is not told.
func TestPlanRequests(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	const path = "/v1/customers/acme/plan-requests"
	tag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
	asks := func(plan, at string) {
		t.Helper()
		if got := n.want(200, "POST", path, `{"plan":"`+plan+`"}`).text; got != `{"plan":"`+plan+`","at":"`+at+`"}` {
			t.Errorf("%s: %s", plan, got)
		}
	}
	n.setTo("2026-01-02T00:00:00Z")
	asks("max", "2026-01-02T00:00:00Z")
	n.setTo("2026-01-02T23:59:59.999999Z")
	asks("max", "2026-01-02T00:00:00Z") // told already
	n.setTo("2026-01-03T00:00:00Z")
	asks("max", "2026-01-03T00:00:00Z")
	for body, field := range map[string]string{
		`{"plan":"pro"}`: "plan", `{"plan":"nothing"}`: "plan", `{"plan":"a b"}`: "plan",
		`{"plan":"a\u0000b"}`: "plan", `{}`: "plan", `{"plan":"max","why":"x"}`: "why",
	} {
		if got := n.faultOf("POST", path, body); got != "422 "+field {
			t.Errorf("%s: %s", body, got)
		}
	}
	n.want(404, "POST", "/v1/customers/nobody/plan-requests", `{"plan":"max"}`)
	n.want(404, "GET", "/v1/customers/nobody/plan-requests", "")
	if got := n.want(200, "GET", path, "").text; got != `{"items":[{"plan":"max","at":"2026-01-03T00:00:00Z"}],"next_cursor":null}` {
		t.Errorf("asked for: %s", got)
	}
	n.tells("?type=customer.plan_requested", "customer.plan_requested 2026-01-02T00:00:00 plan=max", "customer.plan_requested 2026-01-03T00:00:00 plan=max")
	if audited := n.want(200, "GET", "/v1/audit?target=customers/acme/plan-requests", "").items(); len(audited) != 2 {
		t.Errorf("audited: %v", audited)
	}
	// The customer's entity tag is what it was. Once it is on the plan it has not asked for it.
	n.want(200, "PUT", "/v1/customers/acme",
		`{"name":"C","plan":"max","change":"limits_now","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`, "If-Match", tag)
	if left := n.want(200, "GET", path, "").items(); len(left) != 0 {
		t.Errorf("asked for: %v", left)
	}
	n.want(204, "DELETE", "/v1/customers/acme", "")
	n.want(409, "POST", path, `{"plan":"pro"}`)
}
