package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/api/respond"
	"quotad/internal/quota/locked"
)

// held reserves units for acme and returns the reservation's path.
func (n *node) held(cost int, ttl time.Duration) string {
	n.t.Helper()
	got := n.want(201, "POST", "/v1/reservations", fmt.Sprintf(`{"customer":"acme","meter":"requests","cost":%d,"ttl_ms":%d}`, cost, ttl.Milliseconds()))
	return "/v1/reservations/" + got.json["id"].(string)
}

func TestReservations(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	const body = `{"customer":"acme","meter":"requests","cost":3,"ttl_ms":60000,"id":"a"}`
	first := n.want(201, "POST", "/v1/reservations", body)
	id := first.json["id"].(string)
	if _, ok := locked.ParseReservationID(id); !ok || first.header.Get("Location") != "/v1/reservations/"+id {
		t.Errorf("id %q, Location %q", id, first.header.Get("Location"))
	}
	at, err := time.Parse(time.RFC3339Nano, first.json["at"].(string))
	check(t, err)
	if first.json["allowed"] != true || first.json["cost"] != 3.0 || first.json["expires_at"] != at.Add(time.Minute).Format(time.RFC3339Nano) ||
		first.json["replayed"] != false {
		t.Errorf("reserved: %s", first.text)
	}
	if first.header.Get("X-RateLimit-Remaining") != "2" || first.header.Get("RateLimit") == "" || first.header.Get("Retry-After") != "" {
		t.Errorf("headers: %v", first.header)
	}
	again := n.want(201, "POST", "/v1/reservations", body)
	if again.json["id"] != id || again.json["replayed"] != true || again.json["expires_at"] != first.json["expires_at"] {
		t.Errorf("again: %s", again.text)
	}
	if got := n.want(422, "POST", "/v1/reservations", strings.Replace(body, "60000", "60001", 1)); got.json["type"] != "/problems/id-reused" {
		t.Errorf("another under its id: %s", got.text)
	}
	n.standing("acme", 3, 3)
	n.booked("acme", 0)
	for status, query := range map[int]string{429: "", 200: "?deny_status=200", 403: "?deny_status=403"} {
		got := n.want(status, "POST", "/v1/reservations"+query, `{"customer":"acme","meter":"requests","cost":3,"ttl_ms":60000}`)
		if got.json["allowed"] != false || got.json["type"] != respond.QuotaExceeded || fmt.Sprint(got.json["violated-policies"]) != "[hourly]" ||
			got.header.Get("Location") != "" ||
			!strings.Contains(got.json["detail"].(string), "The reservation costs 3") || got.header.Get("Retry-After") == "" {
			t.Errorf("refused: %s %v", got.text, got.header)
		}
	}
	// Without a cost it is 1, without an id each is one of its own.
	for range 2 {
		n.want(201, "POST", "/v1/reservations", `{"customer":"acme","meter":"requests","ttl_ms":60000}`)
	}
	n.standing("acme", 5, 5)
}

func TestCommits(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	held := n.held(3, time.Minute)
	first := n.want(200, "POST", held+"/commit", `{"cost":2}`)
	if first.json["cost"] != 2.0 || first.json["reserved"] != 3.0 || first.json["late"] != false || first.json["replayed"] != false ||
		first.json["customer"] != "acme" || first.json["meter"] != "requests" || !strings.HasSuffix(held, first.json["id"].(string)) {
		t.Errorf("less: %s", first.text)
	}
	if first.header.Get("X-RateLimit-Remaining") != "3" || first.header.Get("RateLimit") == "" {
		t.Errorf("headers: %v", first.header)
	}
	n.standing("acme", 2, 0)
	n.booked("acme", 2)
	if again := n.want(200, "POST", held+"/commit", `{"cost":2}`); again.json["replayed"] != true || again.json["reserved"] != 3.0 {
		t.Errorf("again: %s", again.text)
	}
	for request, says := range map[string]string{
		"POST " + held + "/commit": "was committed with 2 before",
		"DELETE " + held:           "give back what is too much by POST /v1/refunds",
	} {
		method, path, _ := strings.Cut(request, " ")
		body := ""
		if method == "POST" {
			body = `{"cost":3}`
		}
		if got := n.want(409, method, path, body); got.json["type"] != "/problems/conflict" || !strings.Contains(got.json["detail"].(string), says) {
			t.Errorf("%s: %s", request, got.text)
		}
	}
	// More, as far as it fits.
	held = n.held(1, time.Minute)
	got := n.want(409, "POST", held+"/commit", `{"cost":5}`)
	if got.json["type"] != "/problems/does-not-fit" || got.json["committable"] != 3.0 || got.json["late"] != false ||
		len(got.json["limits"].([]any)) != 1 || got.header.Get("RateLimit") == "" {
		t.Errorf("too much: %s %v", got.text, got.header)
	}
	n.standing("acme", 3, 1)
	if got := n.want(200, "POST", held+"/commit", `{"cost":3}`); got.json["cost"] != 3.0 || got.json["reserved"] != 1.0 {
		t.Errorf("more: %s", got.text)
	}
	n.standing("acme", 5, 0)
	n.booked("acme", 5)
}

func TestReleases(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	held := n.held(4, time.Minute)
	for range 2 {
		if got := n.want(204, "DELETE", held, ""); got.text != "" {
			t.Errorf("released: %s", got.text)
		}
	}
	n.standing("acme", 0, 0)
	if got := n.want(409, "POST", held+"/commit", `{"cost":1}`); !strings.Contains(got.json["detail"].(string), "was released before") {
		t.Errorf("committed after it was released: %s", got.text)
	}
	held = n.held(4, time.Minute)
	if got := n.want(200, "POST", held+"/commit", `{"cost":0}`); got.json["cost"] != 0.0 || got.json["reserved"] != 4.0 {
		t.Errorf("committed with nothing: %s", got.text)
	}
	n.standing("acme", 0, 0)
	n.booked("acme", 0)
}

// By a test clock a reservation expires without a wait.
func TestReservationsExpire(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(201, "PUT", "/v1/test-clocks/c", `{"now":"2026-01-31T12:00:00Z"}`)
	n.want(201, "PUT", "/v1/customers/timed", `{"name":"x","plan":"pro","timezone":"UTC","test_clock":"c"}`)
	reserve := func() string {
		t.Helper()
		got := n.want(201, "POST", "/v1/reservations", `{"customer":"timed","meter":"requests","cost":3,"ttl_ms":60000}`)
		if got.json["test_clock"] != "c" {
			t.Errorf("no clock: %s", got.text)
		}
		return "/v1/reservations/" + got.json["id"].(string)
	}
	early, late := reserve(), ""
	n.standing("timed", 3, 3)
	n.want(200, "PUT", "/v1/test-clocks/c", `{"now":"2026-01-31T12:01:00Z"}`)
	n.standing("timed", 0, 0)
	late = reserve()
	got := n.want(409, "POST", early+"/commit", `{"cost":3}`)
	if got.json["committable"] != 2.0 || got.json["late"] != true || got.json["test_clock"] != "c" {
		t.Errorf("late and too much: %s", got.text)
	}
	if got := n.want(200, "POST", early+"/commit", `{"cost":2}`); got.json["late"] != true || got.json["reserved"] != 3.0 || got.json["test_clock"] != "c" {
		t.Errorf("late: %s", got.text)
	}
	n.standing("timed", 5, 3)
	n.booked("timed", 2)
	n.want(200, "PUT", "/v1/test-clocks/c", `{"now":"2026-01-31T12:02:00Z"}`)
	n.want(204, "DELETE", late, "")
	n.standing("timed", 2, 0)
}

// Units in flight are bounded by reservations, beside a rate, and hits ignore that.
func TestConcurrencyLimits(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly + `,{"name":"flight","meter":"requests","algorithm":"concurrency","limit":2,"ttl":"1m"}`)
	first := n.held(1, time.Minute)
	n.held(1, time.Minute)
	got := n.want(429, "POST", "/v1/reservations", `{"customer":"acme","meter":"requests","ttl_ms":60000}`)
	if fmt.Sprint(got.json["violated-policies"]) != "[flight]" {
		t.Errorf("a third: %s", got.text)
	}
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	n.want(200, "POST", first+"/commit", `{"cost":1}`)
	n.held(1, time.Minute)
	n.standing("acme", 4, 2)
}

func TestBadReservations(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(201, "PUT", "/v1/meters/other", `{"unit":"x"}`)
	const start = `{"customer":"acme","meter":"requests"`
	for body, want := range map[string]string{
		``: "400 ", `{`: "400 ", `7`: "422 ", `{}`: "422 customer meter ttl_ms",
		start + `}`:                                              "422 ttl_ms",
		start + `,"ttl_ms":0}`:                                   "422 ttl_ms",
		start + `,"ttl_ms":-1}`:                                  "422 ttl_ms",
		start + `,"ttl_ms":86400001}`:                            "422 ttl_ms",
		start + `,"ttl_ms":9223372036854775807}`:                 "422 ttl_ms",
		start + `,"ttl_ms":"1s"}`:                                "422 ttl_ms",
		start + `,"ttl_ms":1000,"cost":0}`:                       "422 cost",
		start + `,"ttl_ms":1000,"cost":null}`:                    "422 cost",
		start + `,"ttl_ms":1000,"cost":-5}`:                      "422 cost",
		start + `,"ttl_ms":1000,"id":""}`:                        "422 id",
		start + `,"ttl_ms":1000,"dry_run":true}`:                 "422 dry_run",
		start + `,"ttl_ms":1000,"attributes":{"a":1}}`:           "422 attributes.a",
		`{"customer":"nobody","meter":"requests","ttl_ms":1000}`: "404 ",
		`{"customer":"acme","meter":"none","ttl_ms":1000}`:       "404 ",
		`{"customer":"acme","meter":"other","ttl_ms":1000}`:      "403 ",
	} {
		if got := n.faultOf("POST", "/v1/reservations", body); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if got := n.faultOf("POST", "/v1/reservations?deny_status=404", start+`,"ttl_ms":1000}`); got != "422 deny_status" {
		t.Errorf("deny_status: %s", got)
	}
	n.standing("acme", 0, 0)
}

func TestBadCommitsAndReleases(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	held := n.held(3, time.Minute)
	for body, want := range map[string]string{
		``: "400 ", `[]`: "422 ", `{}`: "422 cost", `{"cost":-1}`: "422 cost", `{"cost":null}`: "422 cost", `{"cost":1.5}`: "422 cost",
		`{"cost":1000000000000000}`: "422 cost", `{"cost":1,"id":"x"}`: "422 id",
	} {
		if got := n.faultOf("POST", held+"/commit", body); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	good := strings.TrimPrefix(held, "/v1/reservations/")
	mine, ok := locked.ParseReservationID(good)
	if !ok {
		t.Fatal(good)
	}
	for _, r := range []func(*locked.ReservationID){
		func(r *locked.ReservationID) { r.Customer += 1000 }, func(r *locked.ReservationID) { r.Meter += 1000 },
		func(r *locked.ReservationID) { r.Customer = -1 }, func(r *locked.ReservationID) { r.Meter = -1 },
	} {
		other := mine
		r(&other)
		n.unknown(other.String())
	}
	for _, id := range []string{"x", "rsv_", "rsv_x", good + "A", good[:len(good)-1], strings.ToUpper(good), strings.Repeat("x", 5000), "%00", "a%2Fb", "rsv%5f"} {
		n.unknown(id)
	}
	n.standing("acme", 3, 3)
}

// unknown fails unless there is no reservation of the id, and the answer says what to do.
func (n *node) unknown(id string) {
	n.t.Helper()
	for _, r := range [][3]string{{"POST", "/commit", `{"cost":1}`}, {"DELETE", "", ""}} {
		got := n.want(404, r[0], "/v1/reservations/"+id+r[1], r[2])
		if got.json["type"] != "/problems/not-found" || !strings.Contains(got.json["detail"].(string), "POST /v1/hits") || len(got.text) > 1000 {
			n.t.Errorf("%.100s: %.1000s", id, got.text)
		}
	}
}

// What is done is counted by what it was and what came of it.
func TestOperationMetrics(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","id":"h"}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","id":"h"}`)
	for range 2 {
		n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":1,"id":"r"}`)
	}
	n.want(404, "POST", "/v1/refunds", `{"customer":"nobody","meter":"requests","cost":1,"id":"r"}`)
	held := n.held(3, time.Minute)
	n.want(429, "POST", "/v1/reservations", `{"customer":"acme","meter":"requests","cost":3,"ttl_ms":60000}`)
	n.want(409, "POST", held+"/commit", `{"cost":6}`)
	n.want(200, "POST", held+"/commit", `{"cost":1}`)
	n.want(204, "DELETE", n.held(1, time.Minute), "")
	got := n.want(200, "GET", "/metrics", "").text
	for _, want := range []string{
		`quotad_hits_total{outcome="allowed"} 1`, `quotad_hits_total{outcome="replayed"} 1`,
		`quotad_operations_total{operation="refund",outcome="done"} 1`, `quotad_operations_total{operation="refund",outcome="replayed"} 1`,
		`quotad_operations_total{operation="refund",outcome="failed"} 1`, `quotad_operations_total{operation="reserve",outcome="done"} 2`,
		`quotad_operations_total{operation="reserve",outcome="refused"} 1`, `quotad_operations_total{operation="commit",outcome="refused"} 1`,
		`quotad_operations_total{operation="commit",outcome="done"} 1`, `quotad_operations_total{operation="release",outcome="done"} 1`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
}
