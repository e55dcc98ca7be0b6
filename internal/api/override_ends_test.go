package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/api/hits"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// TestARefusalWaitsForTheOverridesEnd: no answer says never, or later than the end, and from the
// end on no node refuses, whoever has deleted the override by then.
func TestARefusalWaitsForTheOverridesEnd(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	n := newNodeOn(t, url)
	other := newNodeOn(t, url)
	n.setUp(hourly)
	ends := n.nowOf().Add(time.Hour).UTC().Truncate(time.Microsecond)
	n.want(201, "PUT", ofLimit, fmt.Sprintf(`{"limit":0,"expires_at":%q}`, ends.Format(time.RFC3339Nano)))
	check(t, other.server.Catalog.CatchUp(t.Context(), n.server.Catalog.Applied()))
	waits := func(what string, got map[string]any) (left time.Duration) {
		t.Helper()
		at, err := time.Parse(time.RFC3339Nano, got["at"].(string))
		check(t, err)
		left = ends.Sub(at)
		wait, is := got["retry_after_ms"].(float64)
		of := got["limits"].([]any)[0].(map[string]any)["retry_after_ms"]
		if most := float64((left + time.Millisecond - 1).Milliseconds()); !is || wait != most || of != wait {
			t.Errorf("%s: waits for %v, of the limit %v; it ends in %v", what, got["retry_after_ms"], of, left)
		}
		return left
	}
	for _, node := range []*node{n, other} {
		for i := range 2 {
			got := node.want(429, "POST", hits.Pattern, oneHit)
			if memory := got.json["as_of"] != nil; memory != (i == 1) {
				t.Errorf("hit %d from memory: %v", i, memory)
			}
			left := waits("a hit", got.json)
			after := fmt.Sprint(int64((left + time.Second - 1) / time.Second))
			if said := got.header.Get("Retry-After"); said != after || strings.Contains(got.text, "does not help") {
				t.Errorf("Retry-After %s, want %s: %s", said, after, got.text)
			}
		}
		waits("a dry run", node.want(429, "POST", hits.Pattern, `{"customer":"acme","meter":"requests","dry_run":true}`).json)
		waits("with an id", node.want(429, "POST", hits.Pattern, `{"customer":"acme","meter":"requests","id":"a"}`).json)
		for what, body := range map[string]string{"in a batch": `{"hits":[` + oneHit + `]}`, "in an atomic one": `{"atomic":true,"hits":[` + oneHit + `]}`} {
			got := node.want(200, "POST", "/v1/hits/batch", body)
			waits(what, got.json["results"].([]any)[0].(map[string]any))
		}
	}
	// Nobody can delete the override from now on.
	tx, err := n.store.Pool().Begin(t.Context())
	check(t, err)
	defer func() { check(t, tx.Rollback(testkit.Context(t))) }()
	_, err = tx.Exec(t.Context(), `SELECT FROM change_number FOR UPDATE`)
	check(t, err)
	quota := n.want(200, "GET", "/v1/customers/acme/quota", "")
	if got := quota.limits()["hourly"]; got["limit"] != 0.0 {
		t.Errorf("before the end: %v", got)
	}
	n.leap(ends.Add(inexact))
	for _, node := range []*node{n, other} {
		node.want(200, "POST", hits.Pattern, oneHit) // first: its refusal is in the node's memory
		if got := node.want(200, "GET", "/v1/customers/acme/quota", "").limits()["hourly"]; got["limit"] == 0.0 {
			t.Errorf("after the end: %v", got)
		}
		node.want(200, "POST", hits.Pattern, `{"customer":"acme","meter":"requests","id":"`+node.url+`"}`)
	}
	var rows int
	check(t, tx.QueryRow(t.Context(), `SELECT count(*) FROM overrides`).Scan(&rows))
	if rows != 1 {
		t.Errorf("%d overrides: somebody has deleted it, so the test says nothing", rows)
	}
}

// TestTheEndIsMetOnEachWay: each kind of request that comes first after the end meets the plan.
func TestTheEndIsMetOnEachWay(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	names := []string{"hit", "once", "batch", "atomic", "reserve", "look", "quota", "refund", "overrun"}
	for _, key := range names {
		n.want(201, "PUT", "/v1/customers/"+key, `{"name":"A","plan":"pro"}`)
	}
	n.want(201, "POST", "/v1/reservations", `{"customer":"acme","meter":"requests","cost":1,"ttl_ms":1000}`) // the first one writes the meter
	ends := n.nowOf().Add(time.Hour).UTC()
	for _, key := range names {
		n.want(201, "PUT", "/v1/customers/"+key+"/overrides/hourly", fmt.Sprintf(`{"limit":0,"expires_at":%q}`, ends.Format(time.RFC3339Nano)))
		n.want(429, "POST", hits.Pattern, `{"customer":"`+key+`","meter":"requests"}`)
	}
	if got := n.want(429, "POST", "/v1/reservations", `{"customer":"reserve","meter":"requests","cost":1,"ttl_ms":1000}`); got.json["retry_after_ms"] == nil {
		t.Errorf("a reservation: %s", got.text)
	}
	tx, err := n.store.Pool().Begin(t.Context())
	check(t, err)
	defer func() { check(t, tx.Rollback(testkit.Context(t))) }()
	_, err = tx.Exec(t.Context(), `SELECT FROM change_number FOR UPDATE`)
	check(t, err)
	n.leap(ends.Add(inexact))
	of := func(key, more string) string {
		return `{"customer":"` + key + `","meter":"requests","cost":1` + more + `}`
	}
	n.want(200, "POST", hits.Pattern, of("hit", ""))
	n.want(200, "POST", hits.Pattern, of("once", `,"id":"a"`))
	for key, atomic := range map[string]string{"batch": "false", "atomic": "true"} {
		got := n.want(200, "POST", "/v1/hits/batch", `{"atomic":`+atomic+`,"hits":[`+of(key, "")+`]}`)
		if one := got.json["results"].([]any)[0].(map[string]any); one["allowed"] != true {
			t.Errorf("%s: %s", key, got.text)
		}
	}
	n.want(201, "POST", "/v1/reservations", of("reserve", `,"ttl_ms":1000`))
	n.want(200, "POST", hits.Pattern, of("look", `,"dry_run":true`))
	for key, got := range map[string]reply{
		"quota":   n.want(200, "GET", "/v1/customers/quota/quota", ""),
		"refund":  n.want(200, "POST", "/v1/refunds", of("refund", `,"id":"r"`)),
		"overrun": n.want(200, "POST", hits.Pattern, of("overrun", `,"overrun":true`)),
	} {
		if limit := got.limits()["hourly"]; limit["limit"] == 0.0 || limit["exceeded"] == true {
			t.Errorf("%s: %s", key, got.text)
		}
	}
}
