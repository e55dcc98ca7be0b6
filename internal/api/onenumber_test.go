package api

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"quotad/internal/testkit"
)

// One number: the quota and the upcoming invoice are read while hits come and periods are cut.
// Each period has one version and one end, and each count of units one amount, whichever of the two
// is asked.
func TestQuotaAndUpcomingAreOneNumber(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	for i, key := range []string{"cheap", "dear"} {
		for version := range 1 + i { // so that the two have other numbers, too
			headers := []string{}
			if version > 0 {
				headers = []string{"If-Match", "*"}
			}
			n.want(201, "PUT", "/v1/plans/"+key, fmt.Sprintf(`{"name":"P%d","currency":"USD","interval":"month","base_price_minor":2000,
				"prices":[{"meter":"requests","model":"per_unit","unit_price":"%d.01"}]}`, version, i), headers...)
		}
	}
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"C","plan":"cheap"}`)
	var all sync.WaitGroup
	var ended atomic.Bool
	var mu sync.Mutex
	seen := make(map[string]string) // what may have one value only
	note := func(from, key, value string) {
		mu.Lock()
		defer mu.Unlock()
		if was, there := seen[key]; there && was != value {
			t.Errorf("%s: %s is %s, and was %s", from, key, value, was)
		}
		seen[key] = value
	}
	state := func(from string, start, end, version, used, amount any) {
		note(from, fmt.Sprint("the period of ", start), fmt.Sprint("until ", end, ", version ", version))
		note(from, fmt.Sprint("the amount of ", used, " units since ", start), fmt.Sprint(amount))
	}
	var quotas, upcomings atomic.Int64
	ask := func(count *atomic.Int64, do func()) {
		all.Go(func() {
			for !ended.Load() {
				do()
				count.Add(1)
			}
		})
	}
	ask(new(atomic.Int64), func() {
		got := n.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":3}`)
		busy := got.status == 503 && got.json["type"] == "/problems/too-busy" // it met change after change, and charged nothing
		if got.status != 200 && !busy {
			t.Errorf("a hit is %d: %s", got.status, got.text)
		}
	})
	ask(&quotas, func() {
		m := n.want(200, "GET", "/v1/customers/acme/quota", "").json["meters"].([]any)[0].(map[string]any)
		state("quota", m["period_start"], m["period_end"], m["price_version"], m["used"], m["amount_minor"])
	})
	ask(&upcomings, func() {
		i := n.want(200, "GET", "/v1/customers/acme/invoices/upcoming", "").json
		for _, l := range i["lines"].([]any) {
			if l := l.(map[string]any); l["kind"] == "usage" {
				state("upcoming", i["period_start"], i["period_end"], i["price_version"], l["quantity"], l["amount_minor"])
			}
		}
	})
	for change := range 24 {
		plan := []string{"dear", "cheap"}[change%2]
		tag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
		n.want(200, "PUT", "/v1/customers/acme", `{"name":"C","plan":"`+plan+`","change":"now"}`, "If-Match", tag)
		q, u := quotas.Load(), upcomings.Load()
		testkit.Eventually(t, "readings of the period", func() bool { return quotas.Load() > q && upcomings.Load() > u })
	}
	ended.Store(true)
	all.Wait()
	if quotas.Load() < 20 || upcomings.Load() < 20 {
		t.Errorf("only %d and %d readings", quotas.Load(), upcomings.Load())
	}
}

// A clock that another node has set counts in the quota at once, or not at all yet: the limits, the
// period and the amount are of one instant.
func TestQuotaOfOneInstantOnTwoNodes(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	n.made("acme")
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":5}`)
	other := newNodeOn(t, n.database)
	for month := 2; month < 8; month++ {
		now := fmt.Sprintf("2026-%02d-01T00:00:00Z", month)
		n.setTo(now)
		got := other.want(200, "GET", "/v1/customers/acme/quota", "").json
		m := got["meters"].([]any)[0].(map[string]any)
		at, start, end := got["at"].(string), m["period_start"].(string), m["period_end"].(string)
		if at < start || at >= end || at != now {
			t.Errorf("at %s the quota of %s is of %s to %s", now, at, start, end)
		}
	}
}

// A count that is full stays full, whatever adjustments took off: in the quota, the upcoming
// invoice and the draft.
func TestAFullCountIsOneNumber(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	for _, key := range []string{"running", "booked"} {
		n.made(key)
		n.want(200, "POST", "/v1/hits", `{"customer":"`+key+`","meter":"requests","cost":5}`)
	}
	n.setTo("2026-01-02T00:00:00Z")
	n.want(200, "POST", "/v1/hits", `{"customer":"booked","meter":"requests","cost":5}`) // its first hour is booked
	n.exec(`UPDATE counters SET units = 9223372036854775807 WHERE customer = (SELECT id FROM customers WHERE key = 'running');
		UPDATE usage SET admitted = 9223372036854775807 WHERE customer = (SELECT id FROM customers WHERE key = 'booked')`)
	for _, key := range []string{"running", "booked"} {
		path := "/v1/customers/" + key
		n.want(201, "POST", path+"/adjustments", `{"meter":"requests","cost":-7,"reason":"r","id":"a"}`)
		quota := n.want(200, "GET", path+"/quota", "").text
		if !strings.Contains(quota, `"used":9223372036854775807`) || !strings.Contains(quota, `"amount_minor":null`) {
			t.Errorf("the quota of %s: %s", key, quota)
		}
		upcoming := n.want(200, "GET", path+"/invoices/upcoming", "")
		if !strings.Contains(upcoming.text, `"quantity":9223372036854775807`) || upcoming.json["held"] == nil {
			t.Errorf("the upcoming invoice of %s: %s", key, upcoming.text)
		}
	}
}
