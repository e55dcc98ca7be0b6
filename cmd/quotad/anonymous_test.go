package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"quotad/internal/testkit"
)

// A window that the time of being forgotten cuts short is told at the start.
func TestDefaultPlanThatOutlastsTheTTL(t *testing.T) {
	t.Parallel()
	one := start(t, "", "--default-plan=free", "--anonymous-ttl=1h")
	one.do("PUT", "/v1/meters/requests", `{"unit":"request"}`).is(201)
	one.do("PUT", "/v1/plans/free", planOf(hourly, fixed("l", 5))).is(201)
	if two := start(t, one.databaseURL); !strings.Contains(two.log.String(), "plan=free limit=l window=3650d anonymous_ttl=1h") {
		t.Errorf("%s", two.log)
	}
	one.do("PUT", "/v1/plans/free", planOf(hourly), "If-Match: *").is(201)
	if three := start(t, one.databaseURL); strings.Contains(three.log.String(), "level=WARN") {
		t.Errorf("%s", three.log)
	}
}

func (n *testNode) hitOf(customer string) *answer {
	n.t.Helper()
	return n.do("POST", "/v1/hits", hitOf(customer, "requests", ""))
}

func TestDefaultPlan(t *testing.T) {
	t.Parallel()
	one := start(t, "", "--default-plan=free", "--anonymous-ttl=1m")
	two := start(t, one.databaseURL, "--default-plan=free", "--anonymous-ttl=1m")
	one.do("PUT", "/v1/meters/requests", `{"unit":"request"}`).is(201)
	if a := one.hitOf("x").is(404); !strings.Contains(a.str("detail"), `PUT /v1/plans/free`) {
		t.Errorf("%s", a.raw)
	}
	one.do("GET", "/v1/customers/x/quota", "").is(404)
	one.do("PUT", "/v1/plans/free", strings.Replace(planOf(fixed("l", 5)), `"base_price_minor":0`, `"base_price_minor":1`, 1)).is(201)
	if a := two.hitOf("x").is(404); !strings.Contains(a.str("detail"), "has prices") {
		t.Errorf("%s", a.raw)
	}
	one.do("PUT", "/v1/plans/free", planOf(fixed("l", 5)), "If-Match: *").is(201)
	// Who has not had a hit has what that would find, and is not made by looking.
	for _, n := range []*testNode{one, two} {
		fresh := n.do("GET", "/v1/customers/x/quota", "").is(200).has("customer", "x").has("anonymous", true).has("plan", "free").has("plan_version", 2)
		fresh.has("limits.0.used", 0).has("limits.0.remaining", 5).has("limits.0.meter", "requests").has("limits.0.reserved", 0).has("meters.0.used", 0)
		n.do("GET", "/v1/customers/x", "").is(404)
	}
	for _, key := range []string{"erased:7", "a%2Fb"} {
		if a := one.do("GET", "/v1/customers/"+key+"/quota", ""); a.status != 404 && a.status != 422 {
			t.Errorf("%s, of which no hit makes a customer: %s", key, a.raw)
		}
	}
	if n := query[int64](t, one.databaseURL, `SELECT (SELECT count(*) FROM customers) + (SELECT count(*) FROM counters)`); n != 0 {
		t.Errorf("looking wrote %d rows", n)
	}
	two.do("GET", "/v1/customers/x/usage?meter=requests", "").is(404)
	one.do("POST", "/v1/hits", hitOf("x", "none", "")).is(404)

	one.hitOf("x").is(200).has("limits.0.remaining", 4)
	two.hitOf("x").is(200).has("limits.0.remaining", 3)
	one.do("GET", "/v1/customers/x", "").is(200).has("anonymous", true).has("name", "").has("plan", "free").has("timezone", "UTC").has("test_clock", nil)
	two.do("GET", "/v1/customers/x/quota", "").is(200).has("anonymous", true).has("limits.0.used", 2)
	batch := two.do("POST", "/v1/hits/batch", `{"hits":[`+hitOf("b1", "requests", "")+`,`+hitOf("b2", "requests", "")+`,`+hitOf("b1", "requests", "")+`]}`).is(200)
	batch.has("results.0.allowed", true).has("results.2.limits.0.remaining", 3)

	// Claimed, it goes on with what it has used.
	two.do("PUT", "/v1/customers/x", strings.Replace(onPlan, "basic", "free", 1)).is(200).has("anonymous", false).has("name", "Customer")
	two.hitOf("x").is(200).has("limits.0.remaining", 2)
	one.do("PUT", "/v1/customers/x", strings.Replace(onPlan, "basic", "free", 1)).is(428)
	if a := one.do("GET", "/v1/customers/x/quota", "").is(200); a.at("anonymous") != nil {
		t.Errorf("%s", a.raw)
	}
	// Archived, it is not made again.
	one.do("DELETE", "/v1/customers/b2", "").is(204)
	one.hitOf("b2").is(404)
	one.do("GET", "/v1/customers/b2/quota", "").is(404)
	two.hears()
	two.hitOf("b2").is(404)

	// The nodes' own forgetters do the rest.
	one.hitOf("busy").is(200)
	const idle = `UPDATE counters SET at = at - 120000000 WHERE customer = (SELECT id FROM customers WHERE key = 'b1') RETURNING customer`
	id := query[int64](t, one.databaseURL, idle)
	query[int64](t, one.databaseURL, `WITH aged AS (UPDATE customers SET created_at = created_at - interval '2 minutes' RETURNING 1) SELECT count(*) FROM aged`)
	testkit.Eventually(t, "the idle one is forgotten", func() bool {
		return query[int64](t, one.databaseURL, `SELECT count(*) FROM customers WHERE key = 'b1'`) == 0
	})
	for _, key := range []string{"x", "b2", "busy"} {
		one.do("GET", "/v1/customers/"+key, "").is(200)
	}
	query[int64](t, one.databaseURL, `UPDATE forgotten SET at = at - interval '2 minutes' RETURNING customer`)
	testkit.Eventually(t, "its counters go and its usage stays", func() bool {
		return query[int64](t, one.databaseURL, `SELECT count(*) FROM counters WHERE customer = $1`, id) == 0 &&
			query[int64](t, one.databaseURL, `SELECT coalesce(sum(admitted), 0)::bigint FROM usage WHERE customer = $1`, id) == 2
	})
	for _, n := range []*testNode{one, two} {
		testkit.Eventually(t, "its next hit makes another", func() bool { return n.hitOf("b1").is(200).num("limits.0.used") <= 2 })
	}
}

// Many customers come to both nodes for the first time at once, each many times: what is
// granted to each is what the plan says, to the unit.
func TestFirstHitsAreExact(t *testing.T) {
	t.Parallel()
	one := start(t, "", "--default-plan=free")
	two := start(t, one.databaseURL, "--default-plan=free")
	one.do("PUT", "/v1/meters/requests", `{"unit":"request"}`).is(201)
	one.do("PUT", "/v1/plans/free", planOf(fixed("l", 5))).is(201)
	const customers, each = 6, 4
	counts := make([]map[int]int, customers)
	var mu sync.Mutex
	var running sync.WaitGroup
	for i := range customers {
		counts[i] = map[int]int{}
		for n := range 2 * each {
			running.Go(func() {
				a, err := []*testNode{one, two}[n%2].try("POST", "/v1/hits", hitOf(fmt.Sprint("c", i), "requests", ""))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				counts[i][a.status]++
				mu.Unlock()
			})
		}
	}
	running.Wait()
	for i := range counts {
		if counts[i][200] != 5 || counts[i][429] != 2*each-5 {
			t.Errorf("customer %d: answers by status %v", i, counts[i])
		}
	}
}
