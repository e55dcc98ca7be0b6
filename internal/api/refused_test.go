package api

import (
	"net/url"
	"testing"

	"quotad/internal/testkit"
)

// A customer is told when which limit refused, once the statistic is written.
func TestRefusals(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly + `,{"name":"shade","meter":"requests","algorithm":"fixed_window","limit":1,"window":"1h","mode":"shadow"},
		{"name":"daily","meter":"requests","algorithm":"token_bucket","limit":100,"window":"1d"}`)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-01T00:00:30Z"}`)
	n.want(201, "PUT", "/v1/customers/timed", `{"name":"x","plan":"pro","test_clock":"clock"}`)
	refuse := func(now, cost string) {
		n.do("PUT", "/v1/test-clocks/clock", `{"now":"`+now+`"}`)
		n.want(429, "POST", "/v1/hits", `{"customer":"timed","meter":"requests","cost":`+cost+`}`)
	}
	n.want(200, "POST", "/v1/hits", `{"customer":"timed","meter":"requests","cost":5}`)
	refuse("2026-01-01T00:00:31Z", "1")
	refuse("2026-01-01T00:01:31Z", "2")
	refuse("2026-01-01T00:05:00Z", "101")
	const path = "/v1/customers/timed/refusals"
	var items []map[string]any
	testkit.Eventually(t, "the statistic is written", func() bool {
		items = n.want(200, "GET", path, "").items()
		return len(items) >= 3
	})
	if len(items) != 3 {
		t.Fatalf("%v", items)
	}
	first, second, third := items[0], items[1], items[2]
	if first["limit"] != "daily" || first["admitted_at"] != nil || first["units"] != 101. ||
		second["limit"] != "hourly" || second["admitted_at"] != nil || second["from"] != "2026-01-01T00:05:00Z" ||
		third["limit"] != "hourly" || third["from"] != "2026-01-01T00:00:31Z" || third["to"] != "2026-01-01T00:01:31Z" || third["units"] != 3. ||
		third["admitted_at"] != "2026-01-01T01:00:00Z" || third["meter"] != "requests" {
		t.Errorf("%v", items)
	}
	page := n.want(200, "GET", path+"?limit=2", "")
	cursor := url.QueryEscape(page.json["next_cursor"].(string))
	if rest := n.want(200, "GET", path+"?limit=2&cursor="+cursor, ""); len(rest.items()) != 1 || rest.items()[0]["from"] != third["from"] ||
		rest.json["next_cursor"] != nil {
		t.Errorf("%s", rest.text)
	}
	for query, want := range map[string]int{
		"?meter=requests": 3, "?from=2026-01-01T00:05:00Z": 2, "?to=2026-01-01T00:05:00Z": 1,
		"?from=2026-01-02T00:00:00Z&to=2026-01-03T00:00:00Z": 0,
	} {
		if got := n.want(200, "GET", path+query, "").items(); len(got) != want {
			t.Errorf("%s: %v", query, got)
		}
	}
	n.want(204, "DELETE", "/v1/customers/timed", "")
	n.want(200, "GET", path, "", "Authorization", n.key("support"))
	for _, query := range []string{
		"?meter=", "?meter=a%20b", "?from=x", "?to=x", "?from=2026-01-02T00:00:00Z&to=2026-01-02T00:00:00Z", "?limit=0",
		"?cursor=x", "?limits=1",
	} {
		n.want(422, "GET", path+query, "")
	}
	n.want(404, "GET", path+"?meter=none", "")
	n.want(404, "GET", "/v1/customers/nobody/refusals", "")
	n.want(422, "GET", "/v1/customers/acme/refusals?cursor="+cursor, "")
	n.want(403, "GET", path, "", "Authorization", n.key("backend"))
}
