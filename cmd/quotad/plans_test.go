package main

import (
	"fmt"
	"testing"
)

func TestPlanVersionsAndETags(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(hourly)
	first := n.do("GET", "/v1/plans/basic", "").is(200).has("version", 1)
	etag := first.header.Get("ETag")
	if etag == "" || etag[0] != '"' {
		t.Fatalf("ETag %q", etag)
	}
	n.do("PUT", "/v1/plans/basic", planOf(daily)).is(428)
	n.do("PUT", "/v1/plans/basic", planOf(daily), `If-Match: "nothing"`).is(412)
	second := n.do("PUT", "/v1/plans/basic", planOf(daily), "If-Match: "+etag).is(201).has("version", 2)
	if second.header.Get("ETag") == etag {
		t.Error("the ETag did not change")
	}
	n.do("PUT", "/v1/plans/basic", planOf(hourly), "If-Match: "+etag).is(412)
	n.do("PUT", "/v1/plans/basic", planOf(hourly), "If-Match: *").is(201).has("version", 3)

	n.do("GET", "/v1/plans/basic", "").has("version", 3).has("limits.0.name", "hourly")
	n.do("GET", "/v1/plans/basic/versions/1", "").is(200).has("version", 1).has("limits.0.name", "hourly").has("apply_to", "all")
	n.do("GET", "/v1/plans/basic/versions/2", "").is(200).has("limits.0.name", "daily").has("limits.0.burst", 200).has("limits.0.on_outage", "allow")
	page := n.do("GET", "/v1/plans/basic/versions?limit=2", "").is(200).has("items.1.version", 2).has("items.2", nil)
	n.do("GET", "/v1/plans/basic/versions?limit=2&cursor="+page.str("next_cursor"), "").is(200).
		has("items.0.version", 3).has("items.1", nil).has("next_cursor", nil)
}

func TestCustomersETagsPinsAndArchive(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(fixed("l", 10))
	etag := n.do("GET", "/v1/customers/acme", "").is(200).has("plan", "basic").has("timezone", "UTC").header.Get("ETag")
	n.do("PUT", "/v1/customers/acme", onPlan).is(428)
	n.do("PUT", "/v1/customers/acme", onPlan, `If-Match: "0"`).is(412)
	n.do("PUT", "/v1/customers/acme", `{"name":"Renamed","plan":"basic","timezone":"Europe/Berlin","metadata":{"crm":"7"}}`,
		"If-Match: "+etag).is(200).has("name", "Renamed").has("metadata.crm", "7")
	n.do("PUT", "/v1/customers/acme", onPlan, "If-Match: "+etag).is(412)

	n.hit(1).is(200).has("limits.0.limit", 10)
	n.do("PUT", "/v1/plans/basic", planOf(fixed("l", 20)), "If-Match: *").is(201)
	n.hit(1).is(200).has("limits.0.limit", 20).has("limits.0.used", 2)
	n.do("PUT", "/v1/customers/acme", `{"name":"Pinned","plan":"basic","plan_version":1,"timezone":"UTC"}`, "If-Match: *").is(200)
	n.hit(1).is(200).has("limits.0.limit", 10).has("limits.0.used", 3)

	// Keys need their percent-encoding undone exactly once.
	for key, path := range map[string]string{"auth0|x": "auth0%7Cx", "me@example.com": "me@example.com", "::1": "::1", "a b%41": "a%20b%2541"} {
		n.do("PUT", "/v1/customers/"+path, onPlan).is(201).has("key", key)
		n.do("POST", "/v1/hits", fmt.Sprintf(`{"customer":%q,"meter":"requests"}`, key)).is(200).has("customer", key)
		n.do("GET", "/v1/customers/"+path+"/quota", "").is(200).has("limits.0.used", 1)
	}
	n.do("DELETE", "/v1/customers/acme", "").is(204)
	n.hit(1).is(404).has("type", "/problems/not-found")
	n.do("GET", "/v1/customers/acme", "").is(200)
	n.do("DELETE", "/v1/customers/acme", "").is(204)
}

func TestApplyTo(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(fixed("l", 10))
	limitOf := func(customer string) int64 {
		return n.do("POST", "/v1/hits", fmt.Sprintf(`{"customer":%q,"meter":"requests","cost":0}`, customer)).is(200).num("limits.0.limit")
	}
	write := func(limit int, applyTo string) {
		body := planOf(fixed("l", limit))
		n.do("PUT", "/v1/plans/basic", body[:len(body)-1]+`,"apply_to":"`+applyTo+`"}`, "If-Match: *").is(201).has("apply_to", applyTo)
	}
	write(20, "new")
	n.do("PUT", "/v1/customers/late", onPlan).is(201)
	if old, late := limitOf("acme"), limitOf("late"); old != 10 || late != 20 {
		t.Errorf("apply_to new: %d for the old customer, %d for the new one", old, late)
	}
	write(30, "all")
	if old, late := limitOf("acme"), limitOf("late"); old != 30 || late != 30 {
		t.Errorf("apply_to all: %d for the old customer, %d for the new one", old, late)
	}
	write(40, "new")
	if old, late := limitOf("acme"), limitOf("late"); old != 30 || late != 30 {
		t.Errorf("apply_to new again: %d for the old customer, %d for the new one", old, late)
	}
}
