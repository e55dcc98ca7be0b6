package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/postgres/pgtest"
)

// recovery bounds how long a node may take to notice that its database is back.
const recovery = 15 * time.Second

func TestOutage(t *testing.T) {
	server := pgtest.Server(t)
	n := start(t, server.URL())
	n.setUp(fixed("l", 100))
	n.do("PUT", "/v1/plans/strict", planOf(fixed("a", 100), fixed("b", 100, `"on_outage":"deny"`))).is(201)
	n.do("PUT", "/v1/customers/strict", strings.Replace(onPlan, "basic", "strict", 1)).is(201)
	n.do("PUT", "/v1/customers/unseen", onPlan).is(201)
	strict := func() *answer { return n.do("POST", "/v1/hits", hitOf("strict", "requests", `,"cost":2`)) }
	n.hit(3).is(200)
	strict().is(200)
	n.do("GET", "/readyz", "").is(200).has("status", "ready")

	server.Stop()
	var a *answer
	eventually(t, recovery, "a hit is let in without the database", func() bool {
		a = n.hit(5)
		if a.status == 503 { // one may have been on its way
			a.has("type", "/problems/outcome-unknown")
		}
		return a.status == 200
	})
	a.has("allowed", true).has("degraded", true).has("limits", "[]").has("retry_after_ms", 0).headerIs("RateLimit", "")
	strict().is(503).has("type", "/problems/database-unavailable").headerIs("Retry-After", "1")
	n.do("POST", "/v1/hits", hitOf("unseen", "requests", "")).is(503).headerIs("Retry-After", "1")
	batch := n.do("POST", "/v1/hits/batch", `{"hits":[`+hitOf("acme", "requests", "")+`,`+hitOf("strict", "requests", "")+`]}`).is(200)
	batch.has("results.0.degraded", true).has("results.1.status", 503)
	n.do("GET", "/v1/customers/acme/quota", "").is(503).headerIs("Retry-After", "1")
	n.do("PUT", "/v1/meters/new", `{"unit":"x"}`).is(503)
	eventually(t, recovery, "/readyz speaks of the outage", func() bool {
		return n.do("GET", "/readyz", "").is(200).at("status") == "degraded"
	})
	n.do("GET", "/livez", "").is(200)
	n.do("GET", "/metrics", "").is(200)
	began := time.Now()
	for range 20 {
		n.hit(1).is(200).has("degraded", true)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("20 hits took %s in the outage", took)
	}

	server.Start()
	eventually(t, recovery, "hits are charged again", func() bool { return n.hit(1).is(200).at("degraded") == nil })
	eventually(t, recovery, "/readyz is ready again", func() bool {
		return n.do("GET", "/readyz", "").is(200).at("status") == "ready"
	})
	strict().is(200).has("limits.0.used", 4)
	// Of what was let in without the database nothing was charged.
	if used := n.hit(0).num("limits.0.used"); used != 4 {
		t.Errorf("used is %d: 3 before the outage and 1 after it were charged", used)
	}
}

// What was acknowledged is charged, and what was charged was acknowledged or unknown.
func TestDatabaseKilledUnderHits(t *testing.T) {
	server := pgtest.Server(t)
	n := start(t, server.URL())
	n.setUp(fixed("l", 1_000_000, `"on_outage":"deny"`))
	n.hit(1).is(200)
	acknowledged, unknown := int64(1), int64(0)
	blows := 3
	if testing.Short() {
		blows = 1
	}
	for blow := range blows {
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			if blow%2 == 0 {
				server.Kill()
			} else {
				server.Crash()
			}
		}()
		admitted := 0
		eventually(t, time.Minute, "hits are admitted after the server was killed", func() bool {
			a := n.hit(1)
			switch {
			case a.status == 200:
				acknowledged++
				select {
				case <-killed:
					admitted++
				default:
				}
			case a.at("type") == "/problems/outcome-unknown":
				unknown++
			default:
				a.is(503).has("type", "/problems/database-unavailable")
			}
			return admitted > 20
		})
		<-killed
	}
	charged := n.hit(0).is(200).num("limits.0.used")
	t.Logf("%d acknowledged, %d unknown, %d charged", acknowledged, unknown, charged)
	if charged < acknowledged || charged > acknowledged+unknown {
		t.Errorf("%d charged; %d were acknowledged and %d unknown", charged, acknowledged, unknown)
	}
	if total := query[int64](t, server.URL(), "SELECT total FROM counters"); fmt.Sprint(total) != fmt.Sprint(charged) {
		t.Errorf("the counter's total is %d", total)
	}
}
