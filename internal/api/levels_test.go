package api

import (
	"fmt"
	"strings"
	"testing"

	"quotad/internal/testkit"
)

// seatsNode is a billedNode with the level meter seats, on a plan of 10 dollars a seat and at most 20
// seats, 5 for each team.
func seatsNode(t *testing.T) *node {
	t.Helper()
	n := billedNode(t)
	n.want(201, "PUT", "/v1/meters/seats", `{"unit":"seat","name":"Seats","kind":"level"}`)
	n.want(201, "PUT", "/v1/plans/team", `{"name":"Team","currency":"USD","interval":"month","base_price_minor":0,
		"limits":[{"name":"all","meter":"seats","algorithm":"allocation","limit":20},{"name":"each","meter":"seats","algorithm":"allocation","limit":5,"per":"team"}],
		"prices":[{"meter":"seats","model":"per_unit","unit_price":"10"}]}`)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"C","plan":"team","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	return n
}

// Seats are taken, given up and set; the quota, the usage, the upcoming invoice and the invoice say the
// same of them.
func TestSeatsAreHeld(t *testing.T) {
	t.Parallel()
	n := seatsNode(t)
	const seats = "/v1/customers/acme/levels/seats"
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"seats","cost":4,"attributes":{"team":"a"},"id":"h1"}`)
	got := n.want(429, "POST", "/v1/hits", `{"customer":"acme","meter":"seats","cost":2,"attributes":{"team":"a"}}`).json
	if fmt.Sprint(got["violated-policies"]) != "[each]" {
		t.Errorf("a sixth seat of a team: %v", got)
	}
	n.want(429, "PUT", seats, `{"level":6,"attributes":{"team":"b"}}`)
	set := n.want(200, "PUT", seats, `{"level":3,"attributes":{"team":"b"}}`).json
	if set["cost"] != 3.0 || set["allowed"] != true {
		t.Errorf("team b is set to 3: %v", set)
	}
	n.setTo("2026-01-16T12:00:00Z") // the middle of the month
	n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"seats","cost":9,"hit":"h1","id":"r1"}`)
	fell := n.want(200, "PUT", seats, `{"level":1,"attributes":{"team":"b"}}`).json
	if fell["cost"] != 0.0 {
		t.Errorf("a fall has a cost: %v", fell)
	}
	quota := n.want(200, "GET", "/v1/customers/acme/quota?attr.team=b", "").json
	meter := quota["meters"].([]any)[0].(map[string]any)
	if meter["kind"] != "level" || meter["used"] != 1.0 || meter["amount_minor"] != 4000.0 { // 7 for half a month, 1 for the other: 4 on average
		t.Errorf("the quota says %v", meter)
	}
	if used := fmt.Sprint(quota["limits"].([]any)[0].(map[string]any)["used"], quota["limits"].([]any)[1].(map[string]any)["used"]); used != "1 1" {
		t.Errorf("the limits say %s", used)
	}
	line := n.want(200, "GET", "/v1/customers/acme/invoices/upcoming", "").json["lines"].([]any)[0].(map[string]any)
	if line["amount_minor"] != 4000.0 || fmt.Sprint(line["level"]) != "map[by:average exact:4.000000]" || line["description"] != "Seats: 4 × seat on the average" {
		t.Errorf("the upcoming line is %v", line)
	}
	days := n.want(200, "GET", "/v1/customers/acme/usage?meter=seats&granularity=day&from=2026-01-15T00:00:00Z&to=2026-01-18T00:00:00Z", "").json
	want := `map[points:[map[average:7.000000 last:7 peak:7 start:2026-01-15T00:00:00Z] map[average:7.000000 last:1 peak:7 start:2026-01-16T00:00:00Z] map[average:1.000000 last:1 peak:1 start:2026-01-17T00:00:00Z]] test_clock:clock]`
	if fmt.Sprint(days) != want {
		t.Errorf("the days are %v", days)
	}
	n.setTo("2026-02-01T00:00:11Z")
	n.until("acme", "2026-02-01T00:00:00Z")
	n.setTo("2026-02-01T02:00:00Z")
	n.finalized("acme")
	list := n.want(200, "GET", "/v1/customers/acme/invoices", "").json["items"].([]any)
	invoice := list[0].(map[string]any)
	line = invoice["lines"].([]any)[0].(map[string]any)
	if line["amount_minor"] != 4000.0 || line["quantity"] != 4.0 || invoice["status"] != "finalized" {
		t.Errorf("the invoice is %v", invoice)
	}
	path := "/v1/invoices/" + invoice["id"].(string)
	points := n.want(200, "GET", path+"/lines/1/usage", "").json["points"].([]any)
	if len(points) != 31 || points[15].(map[string]any)["average"] != "4.000000" {
		t.Errorf("the line's days are %v", points)
	}
	if paper := n.want(200, "GET", path+".html", "").text; !strings.Contains(paper, "What was held on the average") || !strings.Contains(paper, "4 × seat") {
		t.Errorf("the paper says %s", paper)
	}
	if csv := n.want(200, "GET", path+".csv", "").text; !strings.Contains(csv, "average,4.000000") {
		t.Errorf("the file says %s", csv)
	}
	if books := n.want(200, "GET", "/v1/reconcile", "").json; books["ok"] != true {
		t.Errorf("the books: %v", books)
	}
}

// TestLevelsOfATeamAfterEdits edits the plan of a level meter, whose limits are per team and then are not.
// An edit alone moves nothing. The first write without the attribute gives all units to the empty value.
func TestLevelsOfATeamAfterEdits(t *testing.T) {
	t.Parallel()
	n, version := seatsNode(t), 0
	plan := func(per string) {
		t.Helper()
		version++
		n.want(201, "PUT", "/v1/plans/team", fmt.Sprintf(`{"name":"Team","currency":"USD","interval":"month","base_price_minor":0,
			"limits":[{"name":"each","meter":"seats","algorithm":"allocation","limit":20%s}],
			"prices":[{"meter":"seats","model":"per_unit","unit_price":"10"}]}`, per), "If-Match", fmt.Sprintf("%q", fmt.Sprint(version)))
	}
	set := func(team string, level, cost int) {
		t.Helper()
		body := fmt.Sprintf(`{"level":%d}`, level)
		if team != "" {
			body = fmt.Sprintf(`{"level":%d,"attributes":{"team":%q}}`, level, team)
		}
		if got := n.want(200, "PUT", "/v1/customers/acme/levels/seats", body).json; got["cost"] != float64(cost) {
			t.Errorf("PUT %s costs %v, want %d", body, got["cost"], cost)
		}
	}
	holds := func(want string) {
		t.Helper()
		got := ""
		for _, team := range []string{"a", "b", ""} {
			quota := n.want(200, "GET", "/v1/customers/acme/quota?attr.team="+team, "").json
			meter := quota["meters"].([]any)[0].(map[string]any)
			got += fmt.Sprintf("%s=%v of %v ", team, quota["limits"].([]any)[0].(map[string]any)["used"], meter["used"])
		}
		if got != want {
			t.Errorf("held are %swant %s", got, want)
		}
	}
	const perTeam = `,"per":"team"`
	plan(perTeam)
	set("a", 5, 5)
	set("b", 5, 5)
	plan("")
	plan(perTeam)
	holds("a=5 of 10 b=5 of 10 =0 of 10 ")
	plan("")
	set("", 2, 0)
	plan(perTeam)
	holds("a=0 of 2 b=0 of 2 =2 of 2 ")
	set("a", 1, 1)
	holds("a=1 of 3 b=0 of 3 =2 of 3 ")
	set("b", 3, 3)
	holds("a=1 of 6 b=3 of 6 =2 of 6 ")
	plan(`,"per":"region"`)
	n.want(200, "PUT", "/v1/customers/acme/levels/seats", `{"level":1,"attributes":{"region":"north"}}`)
	plan(perTeam)
	holds("a=0 of 7 b=0 of 7 =7 of 7 ")
	if books := n.want(200, "GET", "/v1/reconcile", "").json; books["ok"] != true {
		t.Errorf("the books: %v", books)
	}
}

// What a level meter does not take is refused, with the field, and changes nothing.
func TestBadLevels(t *testing.T) {
	t.Parallel()
	n := seatsNode(t)
	n.want(409, "PUT", "/v1/meters/seats", `{"unit":"seat","kind":"flow"}`)
	n.want(409, "PUT", "/v1/meters/requests", `{"unit":"request","kind":"level"}`)
	n.want(200, "PUT", "/v1/meters/seats", `{"unit":"chair"}`)
	const seats = "/v1/customers/acme/levels/seats"
	for _, c := range []struct {
		method, path, body, field string
	}{
		{"PUT", "/v1/meters/other", `{"unit":"u","kind":"heap"}`, "kind"},
		{"PUT", seats, `{"level":-1,"attributes":{"team":"a"}}`, "level"},
		{"PUT", seats, `{"level":1000000000000000,"attributes":{"team":"a"}}`, "level"},
		{"PUT", seats, `{"attributes":{"team":"a"}}`, "level"},
		{"PUT", seats, `{"level":1}`, "attributes"},
		{"PUT", "/v1/customers/acme/levels/requests", `{"level":1}`, "meter"},
		{"POST", "/v1/reservations", `{"customer":"acme","meter":"seats","ttl_ms":1000}`, "meter"},
		{"POST", "/v1/hits", `{"customer":"acme","meter":"seats","overrun":true}`, "meter"},
		{"POST", "/v1/customers/acme/adjustments", `{"meter":"seats","cost":1,"reason":"r","id":"a"}`, "meter"},
		{"PUT", "/v1/customers/acme/prices/requests", `{"model":"per_unit","unit_price":"1","level_by":"peak"}`, "level_by"},
		{"PUT", "/v1/customers/acme/prices/seats", `{"model":"per_unit","unit_price":"1","level_by":"most"}`, "level_by"},
	} {
		got := n.want(422, c.method, c.path, c.body).json
		if errors, _ := got["errors"].([]any); len(errors) != 1 || errors[0].(map[string]any)["field"] != c.field {
			t.Errorf("%s %s %s: %v", c.method, c.path, c.body, got)
		}
	}
	n.want(201, "PUT", "/v1/plans/old",
		`{"name":"Old","currency":"USD","interval":"month","limits":[{"name":"l","meter":"requests","algorithm":"allocation","limit":5}]}`)
	n.want(201, "PUT", "/v1/customers/older", `{"name":"C","plan":"old"}`)
	n.want(422, "PUT", "/v1/customers/older/prices/requests", `{"model":"per_unit","unit_price":"1"}`)
	n.want(404, "PUT", "/v1/customers/nobody/levels/seats", `{"level":1}`)
	n.want(404, "PUT", "/v1/customers/acme/levels/nothing", `{"level":1}`)
	lines := n.want(200, "POST", "/v1/imports", `{"id":"i1","customer":"acme","meter":"seats","cost":1,"at":"2026-01-01T00:00:00Z"}
{"id":"i2","customer":"acme","meter":"seats","level":1,"at":"2026-01-01T00:00:00Z"}
{"id":"i3","customer":"acme","meter":"requests","level":1}
{"id":"i4","customer":"acme","meter":"seats","level":-1}
{"id":"i5","customer":"acme","meter":"seats","level":12,"attributes":{"team":"z"}}`, "Content-Type", "application/x-ndjson").json
	fields := ""
	for _, e := range lines["errors"].([]any) {
		fields += fmt.Sprintf("%v:%v ", e.(map[string]any)["line"], e.(map[string]any)["field"])
	}
	if fields != "1:meter 2:<nil> 3:meter 4:level " || lines["imported"] != 1.0 {
		t.Errorf("the import says %v", lines)
	}
	meters := n.want(200, "GET", "/v1/customers/acme/quota", "").json["meters"].([]any)
	if used := meters[0].(map[string]any)["used"]; used != 12.0 {
		t.Errorf("%v are held", used)
	}
}

// finalized waits until a customer has invoices, and none of them is a draft.
func (n *node) finalized(key string) {
	n.t.Helper()
	list := func(status string) int {
		return len(n.want(200, "GET", "/v1/invoices?test_clock=any&customer="+key+status, "").json["items"].([]any))
	}
	testkit.Eventually(n.t, "no draft stays one", func() bool { return list("") > 0 && list("&status=draft") == 0 })
}
