package api

import (
	"fmt"
	"testing"

	"quotad/internal/api/hits"
)

// TestEditsKeepWhatWasUsed: a changed limit, burst, mode or override keeps what was used,
// to the unit and at the instant of the change; another window or algorithm starts again.
func TestEditsKeepWhatWasUsed(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	clock := func(now string) {
		t.Helper()
		if got := n.do("PUT", "/v1/test-clocks/c", `{"now":"2026-03-01T`+now+`Z"}`); got.status >= 300 {
			t.Fatal(got.text)
		}
	}
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	version := 0
	plan := func(bucket, window string) {
		t.Helper()
		n.want(201, "PUT", "/v1/plans/pro", fmt.Sprintf(`{"name":"Pro","currency":"USD","interval":"month","limits":[
			{"name":"bucket","meter":"requests","algorithm":"token_bucket","window":"1h",%s},
			{"name":"window","meter":"requests",%s}]}`, bucket, window), "If-Match", fmt.Sprintf("%q", fmt.Sprint(version)))
		version++
	}
	used := func(why string, bucket, window float64) {
		t.Helper()
		got := n.want(200, "GET", "/v1/customers/acme/quota", "").limits()
		if got["bucket"]["used"] != bucket || got["window"]["used"] != window {
			t.Errorf("%s: used %v and %v, want %v and %v", why, got["bucket"]["used"], got["window"]["used"], bucket, window)
		}
	}
	clock("00:00:00")
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","limits":[
		{"name":"bucket","meter":"requests","algorithm":"token_bucket","window":"1h","limit":1000,"burst":1000},
		{"name":"window","meter":"requests","algorithm":"fixed_window","limit":5000,"window":"calendar_day"}]}`)
	version++
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","timezone":"UTC","test_clock":"c"}`)
	n.want(200, "POST", hits.Pattern, `{"customer":"acme","meter":"requests","cost":1000}`)
	clock("00:30:00")
	used("half is back", 500, 1000)
	plan(`"limit":10,"burst":1000`, `"algorithm":"fixed_window","limit":4000,"window":"calendar_day","mode":"soft"`)
	used("lowered", 500, 1000)
	clock("01:30:00")
	used("an hour at the lower rate", 490, 1000)
	n.want(200, "POST", hits.Pattern, `{"customer":"acme","meter":"requests","cost":10}`)
	plan(`"limit":1000000,"burst":1000`, `"algorithm":"fixed_window","limit":500,"window":"calendar_day"`)
	n.want(429, "POST", hits.Pattern, `{"customer":"acme","meter":"requests"}`)
	n.want(201, "PUT", "/v1/customers/acme/overrides/window", `{"limit":9000}`)
	n.want(200, "POST", hits.Pattern, `{"customer":"acme","meter":"requests","cost":10}`)
	used("overridden", 510, 1020)
	n.want(201, "PUT", "/v1/customers/acme/overrides/bucket", `{"limit":20,"burst":2000}`)
	used("another burst", 510, 1020)
	clock("02:30:00")
	used("an hour at the override's rate", 490, 1020)
	n.want(200, "POST", hits.Pattern, `{"customer":"acme","meter":"requests","cost":20}`)
	n.want(204, "DELETE", "/v1/customers/acme/overrides/bucket", "")
	n.want(204, "DELETE", "/v1/customers/acme/overrides/window", "")
	used("without overrides", 510, 1040)
	plan(`"limit":1000000,"burst":1000`, `"algorithm":"fixed_window","limit":500,"window":"1d"`)
	used("another window", 510, 0)
	clock("02:30:01")
	used("a second at the higher rate", 233, 0)
}
