package api

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestOverruns: what was spent already is charged and booked past a hard limit, which says so and
// then refuses; by a hit with an id or without, in a batch, and by a commit.
func TestOverruns(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	const start = `{"customer":"acme","meter":"requests"`
	n.want(200, "POST", "/v1/hits", start+`,"cost":4}`)
	n.want(429, "POST", "/v1/hits", start+`,"cost":3,"overrun":false}`)
	got := n.want(200, "POST", "/v1/hits", start+`,"cost":3,"overrun":true}`)
	if l := got.limits()["hourly"]; got.json["allowed"] != true || l["used"] != 7.0 || l["remaining"] != 0.0 || l["exceeded"] != true ||
		l["retry_after_ms"] != 0.0 {
		t.Errorf("an overrun: %s", got.text)
	}
	if got.header.Get("X-RateLimit-Remaining") != "0" || got.header.Get("Retry-After") != "" {
		t.Errorf("headers: %v", got.header)
	}
	for range 2 {
		got := n.want(429, "POST", "/v1/hits", start+`}`)
		if l := got.limits()["hourly"]; l["exceeded"] != true || l["retry_after_ms"].(float64) <= 0 {
			t.Errorf("refused: %s", got.text)
		}
	}
	for i := range 2 {
		if got := n.want(200, "POST", "/v1/hits", start+`,"cost":2,"overrun":true,"id":"x"}`); got.json["replayed"] != (i == 1) {
			t.Errorf("with an id: %s", got.text)
		}
	}
	if got := n.want(422, "POST", "/v1/hits", start+`,"cost":2,"id":"x"}`); got.json["type"] != "/problems/id-reused" {
		t.Errorf("the id of an overrun: %s", got.text)
	}
	batch := n.want(200, "POST", "/v1/hits/batch", `{"hits":[`+start+`},`+start+`,"overrun":true},`+start+`}]}`).json["results"].([]any)
	for i, want := range []bool{false, true, false} {
		if r := batch[i].(map[string]any); r["allowed"] != want {
			t.Errorf("%d in a batch: %v", i, r)
		}
	}
	n.want(200, "POST", "/v1/hits/batch", `{"atomic":true,"hits":[`+start+`,"overrun":true},`+start+`,"overrun":true}]}`)
	n.standing("acme", 12, 0)
	n.booked("acme", 12)
	for body, want := range map[string]string{
		start + `,"overrun":true,"dry_run":true}`: "422 overrun", start + `,"overrun":1}`: "422 overrun", start + `,"overrun":null}`: "422 overrun",
	} {
		if got := n.faultOf("POST", "/v1/hits", body); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	n.want(200, "POST", "/v1/hits", start+`,"cost":0,"overrun":true}`)
	if text := n.want(200, "GET", "/metrics", "").text; !strings.Contains(text, `quotad_exceeded_total{mode="hard"} 5`) {
		t.Error("the metrics do not count overruns")
	}
	n.standing("acme", 12, 0)
}

func TestOverrunsOfCommits(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	held := n.held(3, time.Minute)
	n.want(409, "POST", held+"/commit", `{"cost":9}`)
	for i := range 2 {
		got := n.want(200, "POST", held+"/commit", `{"cost":9,"overrun":true}`)
		if l := got.limits()["hourly"]; got.json["cost"] != 9.0 || got.json["replayed"] != (i == 1) || l["used"] != 9.0 || l["exceeded"] != true {
			t.Errorf("committed: %s", got.text)
		}
	}
	if got := n.faultOf("POST", held+"/commit", `{"cost":9,"overrun":"yes"}`); got != "422 overrun" {
		t.Error(got)
	}
	n.standing("acme", 9, 0)
	n.booked("acme", 9)
	n.want(429, "POST", "/v1/reservations", `{"customer":"acme","meter":"requests","ttl_ms":1000}`)
}

// TestRefundedHits: the id of a hit that was given back in full is told apart from a replay.
func TestRefundedHits(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	const hit = `{"customer":"acme","meter":"requests","cost":4,"id":"h"}`
	n.want(200, "POST", "/v1/hits", hit)
	for i, cost := range []int{1, 3} {
		n.want(200, "POST", "/v1/hits", hit)
		n.want(200, "POST", "/v1/refunds", fmt.Sprintf(`{"customer":"acme","meter":"requests","hit":"h","cost":%d,"id":"r%d"}`, cost, i))
	}
	if got := n.want(409, "POST", "/v1/hits", hit); got.json["type"] != "/problems/refunded" || !strings.Contains(got.json["detail"].(string), "new id") {
		t.Errorf("refunded: %s", got.text)
	}
	if got := n.want(200, "POST", "/v1/hits/batch", `{"hits":[`+hit+`]}`).json["results"].([]any)[0].(map[string]any); got["status"] != 409.0 ||
		got["type"] != "/problems/refunded" {
		t.Errorf("in a batch: %v", got)
	}
	n.want(409, "POST", "/v1/hits/batch", `{"atomic":true,"hits":[`+hit+`]}`)
	n.standing("acme", 0, 0)
	n.booked("acme", 0)
}
