package api

import "testing"

// TestKeysThatArePlaces: "." and ".." are no keys. What has one could not be asked for again, since clients
// and proxies take these out of paths.
func TestKeysThatArePlaces(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	before := n.stored()
	plan := func(more string) string { return `{"name":"P","currency":"USD","interval":"month",` + more + `}` }
	for path, key := range map[string]string{"%2e": ".", "%2E%2E": ".."} {
		for _, c := range []wrong{
			{"PUT", "/v1/meters/" + path, `{"unit":"u"}`, "422 key"},
			{"PUT", "/v1/plans/" + path, plan(`"limits":[]`), "422 key"},
			{"PUT", "/v1/plans/" + path + "/draft", plan(`"limits":[]`), "422 key"},
			{"PUT", "/v1/customers/" + path, `{"name":"C","plan":"pro"}`, "422 key"},
			{"PUT", "/v1/sellers/" + path, `{"name":"S"}`, "422 key"},
			{"PUT", "/v1/test-clocks/" + path, `{"now":"2026-01-01T00:00:00Z"}`, "422 key"},
			{"PUT", "/v1/customers/acme/overrides/" + path, `{"limit":1}`, "422 limit"},
			{
				"PUT", "/v1/plans/p", plan(`"limits":[{"name":"` + key + `","meter":"requests","algorithm":"fixed_window","limit":5,"window":"1h"}]`),
				"422 limits[0].name",
			},
			{"PUT", "/v1/plans/p", plan(`"meters":["` + key + `"]`), "422 meters[0]"},
			{"PUT", "/v1/customers/c", `{"name":"C","plan":"` + key + `"}`, "422 plan"},
			{"POST", "/v1/hits", `{"customer":"` + key + `","meter":"requests"}`, "422 customer"},
			{"POST", "/v1/hits", `{"customer":"acme","meter":"` + key + `"}`, "422 meter"},
		} {
			if got := n.faultOf(c.method, c.path, c.body); got != c.want {
				t.Errorf("%s %s %s: %s, want %s", c.method, c.path, c.body, got, c.want)
			}
		}
	}
	if after := n.stored(); after != before {
		t.Errorf("something was written: %s, before: %s", after, before)
	}
	// A feature and an attribute stand in no path.
	n.want(201, "PUT", "/v1/plans/p", plan(`"features":{"..":true}`))
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","attributes":{".":"x"}}`)
}
