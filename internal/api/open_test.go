package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"quotad/internal/testkit"
)

const openPath = "/v1/customers/timed/reservations"

// flights is a plan with reservations on two meters, and a customer on a test clock.
func (n *node) flights() {
	n.t.Helper()
	n.want(201, "PUT", "/v1/meters/jobs", `{"unit":"job"}`)
	n.setUp(`{"name":"flight","meter":"jobs","algorithm":"concurrency","limit":100,"ttl":"1h"},
		{"name":"each","meter":"requests","algorithm":"fixed_window","limit":1000,"window":"1h","per":"ip"}`)
	n.clock("2026-01-31T12:00:00Z")
	n.want(201, "PUT", "/v1/customers/timed", `{"name":"x","plan":"pro","timezone":"UTC","test_clock":"c"}`)
}

func (n *node) clock(now string) {
	n.t.Helper()
	if got := n.do("PUT", "/v1/test-clocks/c", `{"now":"`+now+`"}`); got.status >= 400 {
		n.t.Fatal(got.text)
	}
}

// reserved makes a reservation of the customer on the test clock.
func (n *node) reserved(meter string, cost, seconds int, attributes string) string {
	n.t.Helper()
	body := fmt.Sprintf(`{"customer":"timed","meter":%q,"cost":%d,"ttl_ms":%d,"attributes":%s}`, meter, cost, seconds*1000, attributes)
	return n.want(201, "POST", "/v1/reservations", body).json["id"].(string)
}

// lists fails unless a list has these reservations, in their order.
func (n *node) lists(query string, ids ...string) reply {
	n.t.Helper()
	got := n.want(200, "GET", openPath+query, "")
	var have []string
	for _, item := range got.items() {
		have = append(have, item["id"].(string))
	}
	if strings.Join(have, " ") != strings.Join(ids, " ") {
		n.t.Errorf("%s lists %v, not %v", query, have, ids)
	}
	return got
}

func TestOpenReservations(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.flights()
	n.lists("")
	late := n.reserved("requests", 3, 90, `{"ip":"10.0.0.1","agent":"x"}`)
	n.clock("2026-01-31T12:00:10.5Z")
	soon := n.reserved("jobs", 2, 30, `{}`)
	between := n.reserved("requests", 1, 60, `{}`)
	all := n.lists("", soon, between, late).items()
	for i, want := range []map[string]any{
		{
			"id": soon, "meter": "jobs", "cost": 2., "attributes": map[string]any{}, "created_at": "2026-01-31T12:00:10.5Z",
			"expires_at": "2026-01-31T12:00:40.5Z", "test_clock": "c",
		},
		{
			"id": between, "meter": "requests", "cost": 1., "attributes": map[string]any{"ip": ""}, "created_at": "2026-01-31T12:00:10.5Z",
			"expires_at": "2026-01-31T12:01:10.5Z", "test_clock": "c",
		},
		{
			"id": late, "meter": "requests", "cost": 3., "attributes": map[string]any{"ip": "10.0.0.1"}, "created_at": "2026-01-31T12:00:00Z",
			"expires_at": "2026-01-31T12:01:30Z", "test_clock": "c",
		},
	} {
		if fmt.Sprint(all[i]) != fmt.Sprint(want) {
			t.Errorf("%v, not %v", all[i], want)
		}
	}
	n.lists("?meter=jobs", soon)
	n.lists("?meter=requests", between, late)
	n.lists("?attr.ip=10.0.0.1", late)
	n.lists("?attr.ip=", between)
	n.lists("?attr.ip=10.0.0.1&meter=jobs")
	n.lists("?attr.agent=x") // no limit is per that

	if got := n.want(200, "GET", "/v1/customers/acme/reservations", "").items(); len(got) != 0 {
		t.Errorf("another's: %v", got)
	}
	for _, scope := range []string{"backend", "read", "support"} {
		if got := n.want(200, "GET", openPath, "", "Authorization", n.key(scope)).items(); len(got) != 3 {
			t.Errorf("scope %s sees %v", scope, got)
		}
	}
	n.want(401, "GET", openPath, "", "Authorization", "-")
}

// Settled ones are gone, and so are those that have expired, whether or not anybody has looked.
func TestOpenReservationsEnd(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	other := newNodeOn(t, n.database)
	n.flights()
	committed, released := n.reserved("jobs", 1, 60, `{}`), n.reserved("jobs", 1, 60, `{}`)
	short, long := n.reserved("jobs", 1, 20, `{}`), n.reserved("requests", 1, 80, `{"ip":"a"}`)
	n.want(200, "POST", "/v1/reservations/"+committed+"/commit", `{"cost":1}`)
	n.lists("?meter=jobs", short, released)
	n.want(204, "DELETE", "/v1/reservations/"+released, "")
	n.lists("", short, long)
	n.clock("2026-01-31T12:00:19.999999Z")
	n.lists("", short, long)
	n.clock("2026-01-31T12:00:20Z")
	for _, at := range []*node{n, other} { // the other may not have heard of the clock yet
		at.lists("", long)
	}
	n.lists("?meter=jobs")
	n.clock("2026-01-31T12:00:00Z") // as if it had never been later: nobody has taken it off
	n.lists("", short, long)
	n.clock("2026-01-31T12:00:20Z")
	n.want(200, "POST", "/v1/hits", `{"customer":"timed","meter":"jobs"}`)
	n.clock("2026-01-31T12:00:00Z")
	n.lists("", long)

	// A plan that loses the meter, or the limit, leaves them open.
	n.want(200, "PUT", "/v1/customers/timed", `{"name":"x","plan":"bare","timezone":"UTC","change":"limits_now"}`, "If-Match", n.barePlan())
	n.lists("?attr.ip=a", long)
	n.want(204, "DELETE", "/v1/customers/timed", "")
	n.want(404, "GET", openPath, "")
}

// barePlan makes a plan without meters, and returns the etag of the customer on the test clock.
func (n *node) barePlan() string {
	n.t.Helper()
	n.want(201, "PUT", "/v1/plans/bare", `{"name":"Bare","currency":"USD","interval":"month"}`)
	return n.want(200, "GET", "/v1/customers/timed", "").header.Get("ETag")
}

func TestOpenReservationsInPages(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.flights()
	var ids []string
	for i := range 7 { // some expire together
		ids = append(ids, n.reserved([]string{"jobs", "requests"}[i%2], 1, 60+10*(i/3), `{}`))
	}
	all := n.want(200, "GET", openPath, "")
	if len(all.items()) != len(ids) || all.json["next_cursor"] != nil {
		t.Fatalf("not %d: %s", len(ids), all.text)
	}
	var paged []map[string]any
	for path := openPath + "?limit=2"; ; {
		page := n.want(200, "GET", path, "")
		paged = append(paged, page.items()...)
		next, more := page.json["next_cursor"].(string)
		if !more {
			break
		}
		if len(page.items()) != 2 {
			t.Errorf("a page of %d before the last", len(page.items()))
		}
		path = openPath + "?limit=2&cursor=" + url.QueryEscape(next)
	}
	if fmt.Sprint(paged) != fmt.Sprint(all.items()) {
		t.Errorf("in pages: %v\nat once: %v", paged, all.items())
	}
	// A cursor stays good when the reservation that it stands for is over.
	first := n.want(200, "GET", openPath+"?limit=1", "")
	n.want(204, "DELETE", "/v1/reservations/"+first.items()[0]["id"].(string), "")
	cursor := first.json["next_cursor"].(string)
	if rest := n.want(200, "GET", openPath+"?cursor="+url.QueryEscape(cursor), "").items(); fmt.Sprint(rest) != fmt.Sprint(all.items()[1:]) {
		t.Errorf("behind what is over: %v", rest)
	}
	for query, want := range map[string]string{
		"?limit=0": "422 limit", "?limit=1001": "422 limit", "?limit=x": "422 limit", "?limit=-1": "422 limit",
		"?cursor=x": "422 cursor", "?cursor=" + cursor + "A": "422 cursor", "?cursor=" + cursor[:len(cursor)-2]: "422 cursor",
		"?meter=": "422 meter", "?meter=a%20b": "422 meter", "?meter=none": "404 ", "?meters=jobs": "422 meters",
		"?attr.ip=a&attr.zone=b": "422 attr.zone", "?attr.ip=%00": "422 attr.ip", "?attr.=x": "422 attr.",
	} {
		if got := n.faultOf("GET", openPath+query, ""); got != want {
			t.Errorf("%s: %s, not %s", query, got, want)
		}
	}
	if got := n.faultOf("GET", "/v1/customers/acme/reservations?cursor="+cursor, ""); got != "422 cursor" {
		t.Errorf("another customer's cursor: %s", got)
	}
	n.want(404, "GET", "/v1/customers/nobody/reservations", "")
	n.want(422, "GET", "/v1/customers/a%2Fb/reservations", "")
}

// A customer with 10,000 of them gets each in one page, and no page takes long.
func TestManyOpenReservations(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.manyHolds()
	seen := make(map[string]bool)
	last := ""
	var longest time.Duration
	for cursor := ""; ; {
		status, text, took := n.text("GET", "/v1/customers/acme/reservations?limit=1000"+cursor, "")
		var page struct {
			Items []struct {
				ID      string    `json:"id"`
				Expires time.Time `json:"expires_at"`
			} `json:"items"`
			Next *string `json:"next_cursor"`
		}
		check(t, json.Unmarshal([]byte(text), &page))
		if longest = max(longest, took); status != http.StatusOK || len(page.Items) != 1000 {
			t.Fatalf("%d with %d items", status, len(page.Items))
		}
		for _, item := range page.Items {
			at := item.Expires.Format("2006-01-02T15:04:05.000000")
			if seen[item.ID] || at < last {
				t.Fatalf("%s at %s comes after %s, or again", item.ID, at, last)
			}
			seen[item.ID], last = true, at
		}
		if page.Next == nil {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(*page.Next)
	}
	if len(seen) != 10_000 {
		t.Errorf("%d are listed", len(seen))
	}
	testkit.AtMost(t, "a page", longest, 3*time.Second)
}
