package api

import (
	"testing"

	"quotad/internal/testkit/pgtest"
)

// A limit's reset beyond a scheduled change is that of the limit which counts then: at the new rate from
// the change on, at the change for a limit that the other plan lacks. What is told before is told after.
func TestResetsLookAhead(t *testing.T) {
	t.Parallel()
	n := newNodeOn(t, pgtest.NewDatabase(t))
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-31T23:00:00Z"}`)
	n.want(201, "PUT", "/v1/meters/calls", `{"unit":"call"}`)
	const (
		plan = `{"name":"P","currency":"USD","interval":"month","limits":[
			{"name":"kept","meter":"calls","algorithm":"fixed_window","limit":1000,"window":"7d"},
			{"name":"stock","meter":"calls","algorithm":"allocation","limit":1000},
			{"name":"log","meter":"calls","algorithm":"sliding_log","limit":1000,"window":"2h"},`
		pace   = `{"name":"pace","meter":"calls","algorithm":"token_bucket","window":"10h","burst":1000,"limit":`
		change = "2026-02-01T00:00:00Z"
	)
	n.want(201, "PUT", "/v1/plans/before", plan+`
		{"name":"window","meter":"calls","algorithm":"fixed_window","limit":1000,"window":"7d"},
		{"name":"seats","meter":"calls","algorithm":"allocation","limit":1000},
		{"name":"soon","meter":"calls","algorithm":"fixed_window","limit":1000,"window":"30m"},`+pace+`10}]}`)
	n.want(201, "PUT", "/v1/plans/after", plan+pace+`100}]}`)
	n.joins("before")
	resets := func(when string, want map[string]any) {
		t.Helper()
		all := n.want(200, "GET", "/v1/customers/acme/quota", "").limits()
		for name, at := range want {
			if all[name]["reset_at"] != at {
				t.Errorf("%s: %s resets at %v, want %v", when, name, all[name]["reset_at"], at)
			}
		}
	}
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"calls","cost":9}`)
	// One unit an hour comes back, so that the 9th is back at 8:00.
	resets("without a change", map[string]any{
		"kept": "2026-02-05T00:00:00Z", "window": "2026-02-05T00:00:00Z", "stock": nil, "seats": nil,
		"soon": "2026-01-31T23:30:00Z", "log": "2026-02-01T01:00:00Z", "pace": "2026-02-01T08:00:00Z",
	})
	n.scheduled(201, `{"plan":"after"}`)
	ahead := map[string]any{
		"kept": "2026-02-05T00:00:00Z", "window": change, "stock": nil, "seats": change,
		"soon": "2026-01-31T23:30:00Z", "log": "2026-02-01T01:00:00Z",
		"pace": "2026-02-01T00:48:00Z", // 8 are missing at the change, and 10 an hour come back then
	}
	resets("before the change", ahead)
	n.want(201, "POST", "/v1/reservations", `{"customer":"acme","meter":"calls","cost":2,"ttl_ms":1800000}`)
	resets("with units that come back at 23:30", ahead)
	// The other plan gets another rate before it counts: 20 an hour.
	tag := n.want(200, "GET", "/v1/plans/after", "").header.Get("ETag")
	n.want(201, "PUT", "/v1/plans/after", `{"apply_to":"all",`+plan[1:]+pace+`200}]}`, "If-Match", tag)
	ahead["pace"] = "2026-02-01T00:24:00Z"
	resets("after an edit of the other plan", ahead)
	n.setTo("2026-01-31T23:20:00Z") // the change counts from its own instant, however often the clock is set before that
	resets("after the clock was set", ahead)
	n.want(200, "PUT", "/v1/test-clocks/clock", `{"now":"`+change+`"}`)
	resets("at the change", map[string]any{
		"kept": "2026-02-05T00:00:00Z", "window": nil, "stock": nil, "log": "2026-02-01T01:00:00Z", "pace": ahead["pace"],
	})
}
