package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"quotad/internal/testkit"
)

// quotaHeader reads RateLimit or RateLimit-Policy: its parameters by the limit's name.
func quotaHeader(a *answer, name string) map[string]map[string]int64 {
	a.t.Helper()
	list, err := httpsfv.UnmarshalList(a.header.Values(name))
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	limits := map[string]map[string]int64{}
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		limit, isString := item.Value.(string)
		if !ok || !isString {
			a.t.Fatalf("%s: %v is no string", name, member)
		}
		limits[limit] = map[string]int64{}
		for _, param := range item.Params.Names() {
			value, _ := item.Params.Get(param)
			limits[limit][param], ok = value.(int64)
			if !ok {
				a.t.Fatalf("%s: %s of %s is no integer", name, param, limit)
			}
		}
	}
	return limits
}

// ceilSeconds is the whole seconds between two times of an answer, rounded up.
func ceilSeconds(a *answer, from, to string) int64 {
	a.t.Helper()
	times := [2]time.Time{}
	for i, path := range []string{from, to} {
		var err error
		if times[i], err = time.Parse(time.RFC3339Nano, a.str(path)); err != nil {
			a.t.Fatal(err)
		}
	}
	us := times[1].Sub(times[0]).Microseconds()
	return (us + 999_999) / 1_000_000
}

func TestHitToTheRefusal(t *testing.T) {
	t.Parallel()
	awayFromHoursEnd(t)
	n := start(t, "")
	n.setUp(hourly, daily)
	_, backend := n.newKey("backend")
	n = n.as(backend)

	a := n.hit(1).is(200).has("allowed", true).has("customer", "acme").has("meter", "requests").has("cost", 1).
		has("replayed", false).has("retry_after_ms", 0).has("degraded", nil)
	for i, want := range []struct {
		name, algorithm string
		limit           int64
	}{{"hourly", "fixed_window", 5000}, {"daily", "token_bucket", 200}} {
		l := fmt.Sprintf("limits.%d.", i)
		a.has(l+"name", want.name).has(l+"algorithm", want.algorithm).has(l+"mode", "hard").has(l+"limit", want.limit).
			has(l+"used", 1).has(l+"remaining", want.limit-1).has(l+"exceeded", false).has(l+"retry_after_ms", 0)
	}
	a.headerIs("Content-Type", "application/json").headerIs("Cache-Control", "no-store").headerIs("Retry-After", "").
		headerIs("RateLimit-Policy", `"hourly";q=5000;w=3600, "daily";q=200;w=86400`).
		headerIs("RateLimit", fmt.Sprintf(`"hourly";r=4999;t=%d, "daily";r=199;t=432`, ceilSeconds(a, "at", "limits.0.reset_at"))).
		headerIs("X-RateLimit-Limit", "200").headerIs("X-RateLimit-Remaining", "199").headerIs("X-RateLimit-Reset", "432")

	n.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":50,"dry_run":true}`).is(200).has("limits.1.used", 1)
	n.hit(0).is(200).has("limits.1.used", 1)
	n.hit(199).is(200).has("limits.1.remaining", 0).headerIs("X-RateLimit-Remaining", "0")
	n.hit(0).is(200).has("allowed", true)

	a = n.hit(2).is(429).has("allowed", false).has("status", 429).has("title", "Quota exceeded").
		has("type", "https://iana.org/assignments/http-problem-types#quota-exceeded").
		has("violated-policies.0", "daily").has("violated-policies.1", nil).
		has("cost", 2).has("replayed", false).has("limits.0.retry_after_ms", 0).has("limits.0.used", 200).
		headerIs("Content-Type", "application/problem+json").headerIs("Cache-Control", "no-store")
	if a.str("detail") == "" {
		t.Error("no detail")
	}
	wait := a.num("retry_after_ms")
	// Two tokens take 2 · 86400 s / 200 = 864 s, less what has passed since the last hit.
	if wait <= 850_000 || wait > 864_000 || wait != a.num("limits.1.retry_after_ms") {
		t.Errorf("retry_after_ms %d: %s", wait, a.raw)
	}
	a.headerIs("Retry-After", fmt.Sprint((wait+999)/1000))
	policy, state := quotaHeader(a, "RateLimit-Policy"), quotaHeader(a, "RateLimit")
	if policy["daily"]["q"] != 200 || policy["daily"]["w"] != 86400 || state["daily"]["r"] != 0 ||
		state["daily"]["t"] != ceilSeconds(a, "at", "limits.1.reset_at") || state["hourly"]["r"] != 4800 {
		t.Errorf("headers %v %v", policy, state)
	}
	// What can never be admitted has no Retry-After.
	n.hit(201).is(429).has("retry_after_ms", nil).has("limits.1.retry_after_ms", nil).headerIs("Retry-After", "")
	n.hit(5001).is(429).has("violated-policies.0", "hourly").has("violated-policies.1", "daily").has("retry_after_ms", nil)
	n.hit(0).is(200).has("limits.0.used", 200).has("limits.1.remaining", 0)
}

func TestDenyStatusAndResetStyles(t *testing.T) {
	t.Parallel()
	database := ""
	for style, flags := range map[string][]string{"seconds": nil, "epoch": {"--rate-limit-reset=epoch"}, "ms": {"--rate-limit-reset=ms"}} {
		n := start(t, database, flags...)
		if database == "" {
			database = n.databaseURL
			n.setUp(fixed("l", 1))
			n.hit(1).is(200)
		}
		var a *answer
		for _, status := range []int{200, 403, 429} {
			a = n.do("POST", fmt.Sprintf("/v1/hits?deny_status=%d", status), hitOf("acme", "requests", "")).
				is(status).has("allowed", false).has("status", status).has("violated-policies.0", "l").
				headerIs("Content-Type", "application/problem+json")
			if a.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		}
		at, _ := time.Parse(time.RFC3339Nano, a.str("at"))
		reset, err := time.Parse(time.RFC3339Nano, a.str("limits.0.reset_at"))
		if err != nil {
			t.Fatal(err)
		}
		left := reset.Sub(at)
		want := map[string]int64{
			"seconds": ceilSeconds(a, "at", "limits.0.reset_at"), "epoch": reset.Unix(), "ms": (left.Microseconds() + 999) / 1000,
		}[style]
		a.headerIs("X-RateLimit-Reset", fmt.Sprint(want))
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(fixed("l", 5))
	n.do("PUT", "/v1/meters/other", `{"unit":"thing"}`).is(201)
	n.do("PUT", "/v1/meters/free", `{"unit":"thing"}`).is(201)
	n.do("PUT", "/v1/plans/basic", strings.Replace(planOf(fixed("l", 5)), `"limits"`, `"meters":["free"],"limits"`, 1), "If-Match: *").is(201)
	n.do("PUT", "/v1/customers/beta", onPlan).is(201)

	hits := []struct {
		body string
		want string // "200 used", "429", or the problem's status and type
	}{
		{hitOf("acme", "requests", `,"cost":3`), "200 3"},
		{hitOf("acme", "requests", `,"cost":3`), "429"},
		{hitOf("acme", "requests", `,"cost":2`), "200 5"},
		{hitOf("acme", "requests", `,"cost":0`), "200 5"},
		{hitOf("acme", "requests", `,"cost":1`), "429"},
		{hitOf("beta", "requests", `,"cost":5`), "200 5"},
		{hitOf("acme", "free", `,"cost":7`), "200"},
		{hitOf("acme", "other", ""), "403 /problems/not-in-plan"},
		{hitOf("acme", "nothing", ""), "404 /problems/not-found"},
		{hitOf("nobody", "requests", ""), "404 /problems/not-found"},
		{hitOf("acme", "requests", `,"cost":-1`), "422 /problems/invalid"},
		{hitOf("acme", "requests", `,"coast":1`), "422 /problems/invalid"},
		{`7`, "422 /problems/invalid"},
	}
	bodies := make([]string, len(hits))
	for i, h := range hits {
		bodies[i] = h.body
	}
	a := n.do("POST", "/v1/hits/batch", `{"hits":[`+strings.Join(bodies, ",")+`]}`).is(200)
	if got := len(a.at("results").([]any)); got != len(hits) {
		t.Fatalf("%d results for %d hits: %s", got, len(hits), a.raw)
	}
	for i, h := range hits {
		r := fmt.Sprintf("results.%d.", i)
		status, rest, _ := strings.Cut(h.want, " ")
		switch status {
		case "200":
			a.has(r+"allowed", true)
			if rest != "" {
				a.has(r+"limits.0.used", rest)
			}
		case "429":
			a.has(r+"allowed", false).has(r+"status", 429).has(r+"violated-policies.0", "l")
		default:
			a.has(r+"status", status).has(r+"type", rest).has(r+"allowed", nil)
		}
	}
	n.hit(0).has("limits.0.used", 5)
	n.do("POST", "/v1/hits/batch", `{"hits":[]}`).is(200).has("results", "[]")
	n.do("POST", "/v1/hits/batch", `{"hits":[],"atomic":false}`).is(200)
}

func TestQuotaAndUsage(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.do("PUT", "/v1/meters/requests", `{"unit":"request"}`).is(201)
	n.do("PUT", "/v1/meters/free", `{"unit":"thing"}`).is(201)
	n.do("PUT", "/v1/plans/basic", strings.Replace(planOf(fixed("a", 10), daily), `"limits"`,
		`"meters":["free"],"features":{"sso":true,"seats":5,"tier":"gold"},"limits"`, 1)).is(201)
	n.do("PUT", "/v1/customers/acme", onPlan).is(201)
	_, read := n.newKey("read")
	n.hit(4).is(200)
	n.hit(5).is(200)
	n.hit(2).is(429)
	n.do("POST", "/v1/hits", hitOf("acme", "free", `,"cost":7`)).is(200).has("limits", "[]").headerIs("RateLimit", "")

	q := n.as(read).do("GET", "/v1/customers/acme/quota", "").is(200).has("customer", "acme").has("plan", "basic").has("plan_version", 1).
		has("features.sso", true).has("features.seats", 5).has("features.tier", "gold").
		has("limits.0.name", "a").has("limits.0.meter", "requests").has("limits.0.used", 9).has("limits.0.remaining", 1).has("limits.0.reserved", 0).
		has("limits.1.name", "daily").has("limits.1.used", 9)
	used := map[string]string{}
	for i := range q.at("meters").([]any) {
		m := fmt.Sprintf("meters.%d.", i)
		used[q.str(m+"meter")] = fmt.Sprint(q.at(m + "used"))
	}
	if fmt.Sprint(used) != "map[free:7 requests:9]" {
		t.Errorf("meters: %s", q.raw)
	}
	// The denied units are a statistic, written every second.
	now := time.Now().UTC()
	usage := fmt.Sprintf("/v1/customers/acme/usage?meter=requests&from=%s&to=%s&granularity=",
		now.Add(-time.Hour).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339))
	var a *answer
	sum := func(member string) (all int64) {
		for i := range a.at("points").([]any) {
			all += a.num(fmt.Sprintf("points.%d.%s", i, member))
		}
		return all
	}
	testkit.Eventually(t, "denied units are written", func() bool {
		a = n.as(read).do("GET", usage+"hour", "").is(200)
		return sum("denied") == 2
	})
	for _, granularity := range []string{"hour", "day", "month"} {
		a = n.as(read).do("GET", usage+granularity, "").is(200)
		if sum("admitted") != 9 || sum("denied") != 2 {
			t.Errorf("by %s: %s", granularity, a.raw)
		}
	}
}
