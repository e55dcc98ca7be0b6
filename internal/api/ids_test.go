package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"

	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
)

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", model.MaxID)
	for field, want := range map[string]string{
		`abc`: "abc", `"abc"`: "abc", `"a b"`: "a b", `a b`: "a b", `"a\"b\\"`: `a"b\`, `a"b\`: `a"b\`, `é`: "é", `7`: "7", `a, b`: "a, b",
		long: long, `"` + long + `"`: long, `"` + strings.Repeat(`\\`, model.MaxID) + `"`: strings.Repeat(`\`, model.MaxID),
		`?1`: "?1", `:aGk=:`: ":aGk=:",
	} {
		if got, err := request.IdempotencyKey(http.Header{request.IdempotencyHeader: {field}}); err != nil || got != want {
			t.Errorf("%q: %q %v, want %q", field, got, err, want)
		}
	}
	for _, field := range []string{
		``, `""`, `"`, `"a`, `"a\"`, `"a\b"`, `"a"b"`, `"a" `, `"a";b=1`, `"a", "b"`, `"é"`, "\"a\tb\"", "a\tb", "\xff", "\u0085",
		long + "x", `"` + long + `x"`, strings.Repeat("é", 128),
	} {
		if got, err := request.IdempotencyKey(http.Header{request.IdempotencyHeader: {field}}); err == nil || problem.Of(err).Fields[0].Field != request.IdempotencyHeader {
			t.Errorf("%q is taken as %q, %v", field, got, err)
		}
	}
	// Every string of a structured field is read as what it says.
	for _, id := range []string{"a", `"`, `\`, `\"\\"`, `a "b" \c ~`, long} {
		field, err := httpsfv.Marshal(httpsfv.NewItem(id))
		check(t, err)
		if got, err := request.IdempotencyKey(http.Header{request.IdempotencyHeader: {field}}); err != nil || got != id {
			t.Errorf("%q is sent as %s and read as %q, %v", id, field, got, err)
		}
	}
	if got, err := request.IdempotencyKey(http.Header{request.IdempotencyHeader: {"a", "a"}}); err == nil {
		t.Errorf("two headers are taken as %q", got)
	}
	if got, err := request.IdempotencyKey(http.Header{}); err != nil || got != "" {
		t.Errorf("no header: %q %v", got, err)
	}
}

func TestOneID(t *testing.T) {
	t.Parallel()
	for in, want := range map[[2]string]string{{"", ""}: "", {"a", ""}: "a", {"", "b"}: "b", {"a", "a"}: "a"} {
		if got, err := request.OneID(in[0], in[1]); err != nil || got != want {
			t.Errorf("%q: %q %v", in, got, err)
		}
	}
	if got, err := request.OneID("a", "b"); problem.Of(err).Fields[0].Field != "id" {
		t.Errorf("two ids are taken as %q, %v", got, err)
	}
}

// Whatever changes what comes of a request is part of what its id stands for, and nothing
// else is.
func TestPayloadsOfIDs(t *testing.T) {
	t.Parallel()
	operation := func(body string) model.ID {
		t.Helper()
		h, err := decodeHit([]byte(`{"customer":"acme","meter":"requests","id":"x"`+body+`}`), new(respond.Subject))
		check(t, err)
		return h.operation()
	}
	plain := operation("")
	for body, same := range map[string]bool{
		`,"cost":1`: true, `,"attributes":{}`: true, `,"cost":2`: false,
		`,"attributes":{"a":"1"}`: false, `,"attributes":{"":"1"}`: false,
	} {
		if strings.Contains(body, `"":`) {
			continue // refused before
		}
		if got := operation(body); (got == plain) != same {
			t.Errorf("%s: the same payload %v, want %v", body, got == plain, same)
		}
	}
	if operation(`,"attributes":{"a":"1","b":"2"}`) != operation(`,"attributes":{"b":"2","a":"1"}`) {
		t.Error("the order of attributes is part of the payload")
	}
	if operation(`,"attributes":{"a":"1"}`) == operation(`,"attributes":{"a":"2"}`) || operation(`,"attributes":{"a":"b"}`) == operation(`,"attributes":{"b":"a"}`) {
		t.Error("attributes are not part of the payload")
	}
	for _, look := range []string{`,"dry_run":true`, `,"cost":0`} {
		if operation(look) != (model.ID{}) {
			t.Errorf("a look has an id: %s", look)
		}
	}
	b, err := decodeBatch([]byte(`{"hits":[{"customer":"acme","meter":"requests"},{"customer":"acme","meter":"requests"},{"customer":"acme","meter":"requests","id":"x"},7]}`))
	check(t, err)
	hits, results := b.decode("key")
	if hits[0].operation() == hits[1].operation() || hits[0].operation() == (model.ID{}) || hits[2].operation() != plain || results[3].Err == nil {
		t.Errorf("of a batch: %+v", hits)
	}
	again, _ := b.decode("key")
	other, _ := b.decode("other")
	if hits[1].operation() != again[1].operation() || hits[1].operation() == other[1].operation() {
		t.Error("the ids of a batch's hits are not those of its key")
	}
	none, _ := b.decode("")
	if none[0].operation() != (model.ID{}) {
		t.Error("a batch without a key gives ids")
	}
}

func TestPayloadsOfRefundsAndReservations(t *testing.T) {
	t.Parallel()
	refund := func(body string) locked.Refund {
		t.Helper()
		in := refundRequest{}
		check(t, request.Decode([]byte(`{"customer":"acme","meter":"requests",`+body+`}`), &in))
		check(t, in.identify(""))
		return in.operation(&model.Target{})
	}
	plain := refund(`"cost":2,"id":"x"`)
	if again := refund(`"id":"x","cost":2,"attributes":{}`); again.ID != plain.ID || again.Hit != (model.ID{}) || again.Cost != 2 {
		t.Errorf("%+v, not %+v", again, plain)
	}
	for _, other := range []string{`"cost":3,"id":"x"`, `"cost":2,"id":"y"`, `"cost":2,"id":"x","hit":"h"`, `"cost":2,"id":"x","attributes":{"a":"b"}`} {
		if refund(other).ID == plain.ID {
			t.Errorf("%s is the same refund", other)
		}
	}
	if got := refund(`"cost":2,"id":"x","hit":"h"`).Hit; got != model.NewID("hit", "h") {
		t.Errorf("the hit is %v", got)
	}
	reservation := func(body string) model.ID {
		t.Helper()
		in := reservationRequest{}
		check(t, request.Decode([]byte(`{"customer":"acme","meter":"requests",`+body+`}`), &in))
		asked, err := in.identify("")
		check(t, err)
		return asked.operation()
	}
	made := reservation(`"ttl_ms":1000,"id":"x"`)
	if reservation(`"ttl_ms":1000,"id":"x","cost":1`) != made {
		t.Error("another reservation")
	}
	for _, other := range []string{`"ttl_ms":1001,"id":"x"`, `"ttl_ms":1000,"id":"y"`, `"ttl_ms":1000,"id":"x","cost":2`, `"ttl_ms":1000,"id":"x","attributes":{"a":"b"}`} {
		if reservation(other) == made {
			t.Errorf("%s is the same reservation", other)
		}
	}
	if a, b := reservation(`"ttl_ms":1000`), reservation(`"ttl_ms":1000`); a == b || a == (model.ID{}) {
		t.Error("without an id they are not reservations of their own")
	}
}

// A hit that is sent again with its id is charged once, and answered as at first.
func TestHitsWithIDs(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	first := n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":2,"id":"a"}`)
	if first.json["replayed"] != false {
		t.Errorf("the first: %s", first.text)
	}
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	for _, headers := range [][]string{nil, {"Idempotency-Key", "a"}, {"Idempotency-Key", `"a"`}} {
		body := `{"customer":"acme","meter":"requests","cost":2,"id":"a"}`
		if headers != nil {
			body = `{"customer":"acme","meter":"requests","cost":2}`
		}
		again := n.want(200, "POST", "/v1/hits", body, headers...)
		if again.text != strings.Replace(first.text, `"replayed":false`, `"replayed":true`, 1) || again.header.Get("RateLimit") != first.header.Get("RateLimit") {
			t.Errorf("%v: %s, at first %s", headers, again.text, first.text)
		}
	}
	for _, body := range []string{
		`{"customer":"acme","meter":"requests","cost":1,"id":"a"}`,
		`{"customer":"acme","meter":"requests","cost":2,"attributes":{"a":"b"},"id":"a"}`,
	} {
		if got := n.want(422, "POST", "/v1/hits", body); got.json["type"] != "/problems/id-reused" {
			t.Errorf("%s: %s", body, got.text)
		}
	}
	got := n.want(422, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","id":"a"}`, "Idempotency-Key", "b")
	if at := got.json["errors"].([]any)[0].(map[string]any)["field"]; at != "id" {
		t.Errorf("two ids: %s", got.text)
	}
	// Another customer's ids are its own.
	n.want(201, "PUT", "/v1/customers/initech", `{"name":"x","plan":"pro","timezone":"UTC"}`)
	if got := n.want(200, "POST", "/v1/hits", `{"customer":"initech","meter":"requests","id":"a"}`); got.json["replayed"] != false {
		t.Errorf("of another customer: %s", got.text)
	}
	n.standing("acme", 3, 0)
}

// A refused id is judged again, and one that only looks stores nothing.
func TestRefusedIDsAreJudgedAnew(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":5,"id":"all"}`)
	for range 3 {
		got := n.want(429, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":2,"id":"b"}`)
		if got.json["replayed"] != false || got.json["as_of"] != nil {
			t.Errorf("refused: %s", got.text)
		}
	}
	n.want(201, "PUT", "/v1/customers/acme/overrides/hourly", `{"limit":8}`)
	for _, look := range []string{`{"customer":"acme","meter":"requests","cost":2,"id":"b","dry_run":true}`, `{"customer":"acme","meter":"requests","cost":0,"id":"all"}`} {
		if got := n.want(200, "POST", "/v1/hits", look); got.json["replayed"] != false {
			t.Errorf("a look: %s", got.text)
		}
	}
	for i, replayed := range []bool{false, true, true} {
		// Under another cost than the refused one: nothing was stored of that.
		if got := n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":3,"id":"b"}`); got.json["replayed"] != replayed {
			t.Errorf("%d: %s", i, got.text)
		}
	}
	n.standing("acme", 8, 0)
}

// A batch that is sent again with its key charges what was not charged yet.
func TestBatchesWithKeys(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	replayed := func(r reply) (all string) {
		for _, result := range r.json["results"].([]any) {
			r := result.(map[string]any)
			all += fmt.Sprintf("%v%v ", r["status"], r["replayed"])
		}
		return all
	}
	const body = `{"hits":[
		{"customer":"acme","meter":"requests","cost":1},
		{"customer":"acme","meter":"requests","cost":1},
		{"customer":"acme","meter":"requests","cost":1,"id":"own"},
		{"customer":"acme","meter":"requests","cost":0},
		{"customer":"acme","meter":"requests","cost":7},
		{"customer":"nobody","meter":"requests","cost":1}]}`
	for i, want := range []string{
		"<nil>false <nil>false <nil>false <nil>false 429false 404<nil> ",
		"<nil>true <nil>true <nil>true <nil>false 429false 404<nil> ",
	} {
		if got := replayed(n.want(200, "POST", "/v1/hits/batch", body, "Idempotency-Key", `"k"`)); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
	n.standing("acme", 3, 0)
	if got := n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","id":"own"}`); got.json["replayed"] != true {
		t.Errorf("a hit's own id: %s", got.text)
	}
	got := n.want(200, "POST", "/v1/hits/batch", `{"hits":[{"customer":"acme","meter":"requests","cost":2}]}`, "Idempotency-Key", `k`)
	if !strings.Contains(got.text, "/problems/id-reused") {
		t.Errorf("another batch: %s", got.text)
	}
	// Twice in one batch is once.
	got = n.want(200, "POST", "/v1/hits/batch", `{"hits":[{"customer":"acme","meter":"requests","id":"x"},{"customer":"acme","meter":"requests","id":"x"}]}`)
	if have := replayed(got); have != "<nil>false <nil>true " && have != "<nil>true <nil>false " {
		t.Errorf("twice in one: %s", got.text)
	}
	n.standing("acme", 4, 0)
}

// standing fails unless the customer's first limit stands so.
func (n *node) standing(customer string, used, reserved float64) {
	n.t.Helper()
	got := n.want(200, "GET", "/v1/customers/"+customer+"/quota", "")
	l := got.json["limits"].([]any)[0].(map[string]any)
	if l["used"] != used || l["reserved"] != reserved {
		n.t.Errorf("%s has used %v, of that reserved %v, want %v and %v", customer, l["used"], l["reserved"], used, reserved)
	}
}

// booked fails unless the customer's first meter has this usage in its billing period.
func (n *node) booked(customer string, used float64) {
	n.t.Helper()
	got := n.want(200, "GET", "/v1/customers/"+customer+"/quota", "")
	if m := got.json["meters"].([]any)[0].(map[string]any); m["used"] != used {
		n.t.Errorf("%s's usage is %v, want %v", customer, m["used"], used)
	}
}
