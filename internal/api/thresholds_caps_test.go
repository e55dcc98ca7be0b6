package api

import (
	"fmt"
	"strings"
	"testing"
)

// A cap tells of 50, 80 and 100 percent once in a period, whatever moves it.
func TestThresholdsOfCaps(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-05T00:00:00Z"}`)
	n.capped("acme", `,"billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"`, 100)
	n.asked()
	n.hitOf("acme", 49)
	n.wantRaised("acme")
	n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":1,"reason":"r","id":"a1"}`)
	want := []string{"cap 50 50/100"}
	n.wantRaised("acme", want...)
	n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":-20,"reason":"r","id":"a2"}`)
	n.hitOf("acme", 30)
	n.wantRaised("acme", want...)
	held := n.want(201, "POST", "/v1/reservations", `{"customer":"acme","meter":"requests","cost":25,"ttl_ms":60000}`)
	want = append(want, "cap 80 85/100")
	n.wantRaised("acme", want...)
	one := "/v1/reservations/" + held.json["id"].(string)
	n.want(200, "POST", one+"/commit", `{"cost":5}`)
	n.wantRaised("acme", want...)
	if n.hitOf("acme", 40) != 429 {
		t.Fatal("40 and 65 of 100")
	}
	want = append(want, "cap 100 65/100")
	n.wantRaised("acme", want...)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":50,"overrun":true}`)
	n.wantRaised("acme", want...)
	events := n.want(200, "GET", "/v1/events?type=cap.threshold", "").items()
	e := fmt.Sprint(events[0]["at"], events[0]["test_clock"], events[0]["data"])
	for _, says := range []string{
		"2026-01-05", "clock", "amount_minor:10000", "meter:requests", "percent:50", "units:100", "period_start:2026-01-05",
		"period_end:2026-02-01",
	} {
		if !strings.Contains(e, says) {
			t.Errorf("%s does not say %s", e, says)
		}
	}
	n.raise("acme", 120) // 115 are used: 100 percent is armed again
	n.asked()
	n.hitOf("acme", 5)
	want = append(want, "cap 100 120/120")
	n.wantRaised("acme", want...)
	n.raise("acme", 60)
	n.asked()
	n.wantRaised("acme", want...)
	n.settled("2026-02-01T00:00:10Z")
	n.hitOf("acme", 30)
	want = append(want, "cap 50 30/60")
	n.wantRaised("acme", want...)
	n.raise("acme", 30)
	n.asked()
	want = append(want, "cap 80 30/30", "cap 100 30/30")
	n.wantRaised("acme", want...)
}

// Level meters, buckets and overruns through the API: each raises again only after use was ten points below.
func TestThresholdsOfOtherLimits(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/meters/seats", `{"unit":"seat","kind":"level"}`)
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"P","currency":"USD","interval":"month","base_price_minor":0,"limits":[
		{"name":"seats","meter":"seats","algorithm":"allocation","limit":10,"notify":[80,100]},
		{"name":"bucket","meter":"requests","algorithm":"token_bucket","limit":100,"window":"1d","burst":50,"notify":[90]}]}`)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"A","plan":"pro"}`)
	level := func(to int) { n.do("PUT", "/v1/customers/acme/levels/seats", fmt.Sprintf(`{"level":%d}`, to)) }
	level(7)
	n.wantRaised("acme")
	level(10)
	want := []string{"seats 80 10/10", "seats 100 10/10"}
	n.wantRaised("acme", want...)
	level(8)
	level(10) // 100 was armed, and 80 was not
	want = append(want, "seats 100 10/10")
	n.wantRaised("acme", want...)
	level(7)
	level(9)
	level(12) // refused, and 100 was armed
	want = append(want, "seats 80 9/10", "seats 100 9/10")
	n.wantRaised("acme", want...)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":60,"overrun":true}`)
	want = append(want, "bucket 90 50/100")
	n.wantRaised("acme", want...)
	data := n.want(200, "GET", "/v1/events?type=limit.threshold&limit=100", "").items()[5]["data"].(map[string]any)
	if data["burst"] != 50.0 || data["reset_at"] == nil || data["window_start"] != nil {
		t.Errorf("the event says %v", data)
	}
}
