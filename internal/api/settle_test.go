package api

import (
	"testing"

	"quotad/internal/testkit/pgtest"
)

// A scheduled change that counts is settled by the next write, by a read of the customer, or by the
// sweeper. A bucket holds the same before and after that: its new rate counts from the instant to which
// the test clock was set back after it had shown the change, and settings before that do not matter.
func TestSettlingMovesNoBucket(t *testing.T) {
	t.Parallel()
	shared := scheduledNode(t, pgtest.NewDatabase(t))
	for name, settle := range map[string]func(n *node, path string){
		"read": func(*node, string) {},
		"write": func(n *node, path string) {
			n.want(200, "PUT", path+"/suspension", `{"reason":"x"}`)
			n.want(204, "DELETE", path+"/suspension", "")
		},
		"nothing": func(n *node, path string) {
			n.want(200, "PUT", path+"/suspension", `{"reason":"x"}`)
			n.want(200, "PUT", path+"/suspension", `{"reason":"x"}`)
			n.want(204, "DELETE", path+"/suspension", "")
		},
		"billing": func(n *node, _ string) { n.bill(200, n.customer, `{"buyer":{"name":"A"}}`) },
		"request": func(n *node, path string) { n.want(200, "POST", path+"/plan-requests", `{"plan":"daily"}`) },
		"trial":   func(n *node, path string) { n.want(200, "POST", path+"/preview", `{"plan":"daily","change":"now"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			n := *shared
			n.t, n.customer, n.testClock = t, name, name
			path := "/v1/customers/" + name
			n.want(201, "PUT", "/v1/test-clocks/"+name, `{"now":"2026-01-31T22:00:00Z"}`)
			n.joins("small")
			n.want(201, "PUT", path+"/overrides/day", `{"limit":100000}`)
			n.scheduled(201, `{"plan":"large"}`)
			n.want(200, "POST", "/v1/hits", `{"customer":"`+name+`","meter":"calls","cost":1000}`)
			for _, now := range []string{"2026-01-31T22:30:00Z", "2026-02-01T01:00:00Z", "2026-01-31T23:00:00Z", "2026-02-01T01:00:00Z"} {
				n.setTo(now)
			}
			for _, when := range []string{"before", "after"} {
				// One came back until 23:00, and ten an hour after that.
				if got := n.want(200, "GET", path+"/quota", "").limits()["pace"]["remaining"]; got != 21.0 {
					t.Errorf("%s the change was settled %v remain, want 21", when, got)
				}
				settle(&n, path)
				tag := n.want(200, "GET", path, "").header.Get("ETag")
				if got := n.want(200, "PUT", path, `{"name":"C","plan":"large"}`, "If-Match", tag).header.Get("ETag"); got != tag {
					t.Errorf("a write of what was there changed the entity tag from %s to %s", tag, got)
				}
			}
		})
	}
}

// The event of a scheduled change names the versions that were in force at the change's instant, also
// where versions were written before the change was settled.
func TestSettlingNamesTheVersionsOfTheInstant(t *testing.T) {
	t.Parallel()
	n := scheduledNode(t, pgtest.NewDatabase(t))
	n.setTo("2026-01-31T22:00:00Z")
	n.joins("small")
	n.version("small")
	n.scheduled(201, `{"plan":"large"}`)
	n.version("large")
	n.setTo("2026-02-01T01:00:00Z")
	n.version("small")
	n.version("large")
	n.want(200, "GET", "/v1/customers/acme", "")
	n.tells("?customer=acme&type=customer.plan_changed",
		"customer.plan_changed 2026-02-01T00:00:00 plan=large plan_version=2 previous=small2 <nil> <nil>")
}
