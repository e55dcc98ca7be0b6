package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"quotad/internal/api/hits"
)

// limits are the limits of an answer, by name.
func (r reply) limits() map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, l := range r.json["limits"].([]any) {
		l := l.(map[string]any)
		all[l["name"].(string)] = l
	}
	return all
}

// left is what remains of each limit, in the order of the answer: "hourly 4, ip 1".
func (r reply) left() string {
	var parts []string
	for _, l := range r.json["limits"].([]any) {
		l := l.(map[string]any)
		parts = append(parts, fmt.Sprintf("%s %v", l["name"], l["remaining"]))
	}
	return strings.Join(parts, ", ")
}

// TestModes: soft limits admit and say so, shadows never refuse, are charged only with
// what they would admit, and stay out of the headers.
func TestModes(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(`{"name":"soft","meter":"requests","algorithm":"token_bucket","limit":2,"window":"1d","mode":"soft"},
		{"name":"shadow","meter":"requests","algorithm":"fixed_window","limit":4,"window":"calendar_year","mode":"shadow","on_outage":"deny"},
		{"name":"hard","meter":"requests","algorithm":"sliding_log","limit":9,"window":"1d","precision":"1h"}`)
	for _, c := range []struct {
		cost                 int
		left                 string
		softOver, shadowOver bool
	}{
		{2, "soft 0, shadow 2, hard 7", false, false},
		{1, "soft 0, shadow 1, hard 6", true, false},
		{3, "soft 0, shadow 1, hard 3", true, true},
		{1, "soft 0, shadow 0, hard 2", true, false},
		{0, "soft 0, shadow 0, hard 2", true, false},
	} {
		got := n.want(200, "POST", hits.Pattern, fmt.Sprintf(`{"customer":"acme","meter":"requests","cost":%d}`, c.cost))
		limits := got.limits()
		if got.left() != c.left || limits["soft"]["exceeded"] != c.softOver || limits["shadow"]["exceeded"] != c.shadowOver ||
			limits["hard"]["exceeded"] != false || limits["shadow"]["retry_after_ms"] != 0.0 {
			t.Errorf("cost %d: %s, want %s: %s", c.cost, got.left(), c.left, got.text)
		}
		if policy := got.header.Get("RateLimit-Policy"); policy != `"soft";q=2;w=86400, "hard";q=9;w=86400` ||
			strings.Contains(got.header.Get("RateLimit"), "shadow") || got.header.Get("X-RateLimit-Limit") != "2" {
			t.Errorf("headers %v", got.header)
		}
	}
	refused := n.want(429, "POST", hits.Pattern, `{"customer":"acme","meter":"requests","cost":3}`)
	limits := refused.limits()
	if got := refused.json["violated-policies"].([]any); !slices.Equal(got, []any{"hard"}) {
		t.Errorf("violated %v", got)
	}
	if limits["soft"]["retry_after_ms"] != 0.0 || limits["shadow"]["retry_after_ms"].(float64) <= 0 || limits["shadow"]["exceeded"] != true ||
		refused.left() != "soft 0, shadow 0, hard 2" || strings.Contains(refused.json["detail"].(string), "shadow") {
		t.Errorf("%s", refused.text)
	}
	if refused.json["retry_after_ms"] != limits["hard"]["retry_after_ms"] {
		t.Errorf("the wait is not the hard limit's: %s", refused.text)
	}
	quota := n.want(200, "GET", "/v1/customers/acme/quota", "").limits()
	if quota["soft"]["exceeded"] != true || quota["shadow"]["exceeded"] != false || quota["shadow"]["mode"] != "shadow" {
		t.Errorf("quota %v", quota)
	}
	metrics := n.want(200, "GET", "/metrics", "").text
	if !strings.Contains(metrics, "quotad_exceeded_total{mode=\"soft\"} 3\n") || !strings.Contains(metrics, "quotad_exceeded_total{mode=\"shadow\"} 1\n") {
		t.Error("the metrics do not count what was exceeded")
	}
	used := n.want(200, "GET", "/v1/customers/acme/usage?meter=requests", "").json["points"].([]any)
	if last := used[len(used)-1].(map[string]any); last["admitted"] != 7.0 {
		t.Errorf("usage %v", last)
	}
}

// TestShadowsAlone: a meter whose limits are all shadows has no headers of limits.
func TestShadowsAlone(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(`{"name":"shadow","meter":"requests","algorithm":"fixed_window","limit":0,"window":"1d","mode":"shadow"}`)
	got := n.want(200, "POST", hits.Pattern, `{"customer":"acme","meter":"requests"}`)
	if got.limits()["shadow"]["exceeded"] != true || got.header.Get("RateLimit-Policy") != "" || got.header.Get("X-RateLimit-Limit") != "" {
		t.Errorf("%s, %v", got.text, got.header)
	}
}

// TestPerAttribute: every value has a bucket of its own beside the customer's, in hits,
// batches and the quota answer; limits come in the plan's order.
func TestPerAttribute(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(`{"name":"ip","meter":"requests","algorithm":"fixed_window","limit":2,"window":"1d","per":"ip"},
		{"name":"all","meter":"requests","algorithm":"fixed_window","limit":7,"window":"1d"},
		{"name":"user","meter":"requests","algorithm":"allocation","limit":3,"per":"user"}`)
	hit := func(status int, attributes, left string) {
		t.Helper()
		got := n.want(status, "POST", hits.Pattern, `{"customer":"acme","meter":"requests","attributes":`+attributes+`}`)
		if got.left() != left {
			t.Errorf("%s: %s, want %s", attributes, got.left(), left)
		}
	}
	hit(200, `{"ip":"192.0.2.1","user":"é=\" x"}`, "ip 1, all 6, user 2")
	hit(200, `{"ip":"192.0.2.1"}`, "ip 0, all 5, user 2")
	hit(429, `{"ip":"192.0.2.1"}`, "ip 0, all 5, user 2")
	hit(200, `{"ip":"192.0.2.2","other":"x"}`, "ip 1, all 4, user 1")
	hit(200, `{}`, "ip 1, all 3, user 0")
	hit(429, `{"user":""}`, "ip 1, all 3, user 0")
	batch := n.want(200, "POST", "/v1/hits/batch", `{"hits":[
		{"customer":"acme","meter":"requests","attributes":{"ip":"3","user":"3"}},
		{"customer":"acme","meter":"requests","attributes":{"ip":"4","user":"4"}},
		{"customer":"acme","meter":"requests","attributes":{"ip":"3","user":"3"},"dry_run":true},
		{"customer":"acme","meter":"requests","attributes":{"ip":"3","user":"3"},"cost":2}]}`).json["results"].([]any)
	for i, allowed := range []bool{true, true, true, false} {
		if got := batch[i].(map[string]any); got["allowed"] != allowed {
			t.Errorf("hit %d of the batch: %v", i, got)
		}
	}
	quota := func(query, left string) {
		t.Helper()
		if got := n.want(200, "GET", "/v1/customers/acme/quota"+query, ""); got.left() != left {
			t.Errorf("%s: %s, want %s", query, got.left(), left)
		}
	}
	quota("", "ip 1, all 1, user 0")
	quota("?attr.ip=192.0.2.1&attr.user=%C3%A9%3D%22+x", "ip 0, all 1, user 2")
	quota("?attr.ip=unseen", "ip 2, all 1, user 0")
	for query, field := range map[string]string{
		"attr.i%20p=x": "attr.i p", "attr.=x": "attr.", "attr.ip=%00": "attr.ip", "attr.ip=%FF": "attr.ip",
		"attr.ip=1&attr.ip=2": "attr.ip", "attrs.ip=1": "attrs.ip", "attr.ip=" + strings.Repeat("a", 201): "attr.ip",
	} {
		got := n.want(422, "GET", "/v1/customers/acme/quota?"+query, "")
		if first := got.json["errors"].([]any)[0].(map[string]any); first["field"] != field {
			t.Errorf("%s: %s", query, got.text)
		}
	}
}
