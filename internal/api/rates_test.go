package api

import (
	"testing"

	"quotad/internal/api/hits"
	"quotad/internal/testkit/pgtest"
)

// putBucket writes a version of the plan pro with one token bucket.
func (n *node) putBucket(limit string) {
	n.t.Helper()
	body := `{"name":"Pro","currency":"USD","interval":"month","limits":[{"name":"bucket","meter":"requests","algorithm":"token_bucket",` + limit + `}]}`
	if got := n.do("PUT", "/v1/plans/pro", body, "If-Match", "*"); got.status >= 300 {
		n.t.Fatal(got.text)
	}
}

// left is what a customer's bucket has.
func (n *node) leftOf(customer string) any {
	n.t.Helper()
	return n.want(200, "GET", "/v1/customers/"+customer+"/quota", "").limits()["bucket"]["remaining"]
}

// TestOnlyItsOwnEditsMoveABucket: a rate counts from its own edit on, whatever else is written.
func TestOnlyItsOwnEditsMoveABucket(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	n := newNodeOn(t, url)
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	n.setClock("2026-01-01T00:00:00Z")
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","limits":[
		{"name":"bucket","meter":"requests","algorithm":"token_bucket","limit":6,"window":"10m","burst":100}]}`)
	for _, c := range []string{"timed", "lowered", "ended", "deleted"} {
		n.want(201, "PUT", "/v1/customers/"+c, `{"name":"A","plan":"pro","test_clock":"c1"}`)
		n.want(200, "POST", hits.Pattern, `{"customer":"`+c+`","meter":"requests","cost":100}`)
	}
	left := func(what, customer string, want float64) {
		t.Helper()
		if got := n.leftOf(customer); got != want {
			t.Errorf("%s: %v left, want %v", what, got, want)
		}
		if _, err := n.store.Pool().Exec(t.Context(), `DELETE FROM changes WHERE number < (SELECT number FROM change_number)`); err != nil {
			t.Fatal(err)
		}
		if got := newNodeOn(t, url).leftOf(customer); got != want {
			t.Errorf("%s, on a new node: %v left, want %v", what, got, want)
		}
	}
	n.setClock("2026-01-01T00:00:10Z")
	n.want(201, "PUT", "/v1/customers/ended/overrides/bucket", `{"limit":600,"burst":100,"expires_at":"2026-01-01T00:01:10Z"}`)
	n.want(201, "PUT", "/v1/customers/deleted/overrides/bucket", `{"limit":600,"burst":100}`)
	n.setClock("2026-01-01T00:01:10Z")
	left("an override that has ended", "ended", 60)
	n.want(204, "DELETE", "/v1/customers/deleted/overrides/bucket", "")
	left("an override that was deleted", "deleted", 60)

	n.putBucket(`"limit":600,"window":"10m","burst":100`)
	n.setClock("2026-01-01T00:02:09.9Z")
	left("raised", "timed", 60)
	n.want(200, "PUT", "/v1/customers/timed", `{"name":"B","plan":"pro","metadata":{"a":"b"}}`, "If-Match", "*")
	left("renamed", "timed", 60)
	n.want(200, "POST", hits.Pattern, `{"customer":"timed","meter":"requests","cost":60}`)

	n.want(200, "POST", hits.Pattern, `{"customer":"lowered","meter":"requests","cost":60}`)
	n.putBucket(`"limit":6,"window":"10m","burst":100`)
	n.setClock("2026-01-01T00:03:39.9Z")
	n.putBucket(`"limit":600,"window":"10m","burst":100`)
	left("lowered and put back", "lowered", 1)
}
