package catalog

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"quotad/internal/quota"
	"quotad/internal/quota/model"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// packedWorld has customers c0, c1, … on a plan with the meters api and jobs.
func packedWorld(t *testing.T, customers int) (url string) {
	t.Helper()
	url = pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Declare(t, admin, "api")
	planstest.Declare(t, admin, "jobs")
	plan := planstest.Hourly(1e9)
	jobs := plan.Limits[0]
	jobs.Meter = "jobs"
	jobs.Name = "jobs"
	plan.Limits = append(plan.Limits, jobs)
	planstest.PutPlan(t, admin, "basic", plan)
	if _, err := admin.Pool().Exec(t.Context(), `
		INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change)
		SELECT 'c' || n, 'C', 1, 1, 'UTC', '2026-01-31T00:00:00', 1 FROM generate_series(0, $1::integer - 1) n`, customers); err != nil {
		t.Fatal(err)
	}
	return url
}

// hitOne decides one hit of a customer and returns how much it has used then.
func hitOne(t *testing.T, c *Catalog, e *quota.Engine, customer int, meter string) (used int64) {
	t.Helper()
	target, err := c.Resolve(t.Context(), fmt.Sprint("c", customer), meter, 0)
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.Decide(t.Context(), target, 1)
	if err != nil || !d.Allowed {
		t.Fatalf("c%d: allowed %v, %v", customer, d.Allowed, err)
	}
	return d.View(0).Used
}

// A packed customer's hit makes one round trip, as that of one who is kept ready: what was
// known of its counters' rows is packed with it, also of a meter that nobody asks for.
func TestPackedRowsAreNotReadAgain(t *testing.T) {
	const customers = 40
	url := packedWorld(t, customers)
	o := testOptions()
	o.Customers = 2
	c := idleCatalog(t, url, o)
	e := planstest.OpenEngine(t, url, c.pool, c.Fresh)
	for pass, meter := range []string{"jobs", "api", "api", "api", "jobs", "jobs"} {
		before := e.Stats()
		for i := range customers {
			if used := hitOne(t, c, e, i, meter); used < 1 || used > 3 {
				t.Fatalf("%d used in pass %d", used, pass)
			}
		}
		after := e.Stats()
		if pass < 2 { // the rows are made
			continue
		}
		// But for an hour that has just begun.
		if trips := after.Batches - before.Batches; trips != customers && after.Swapped-before.Swapped == customers {
			t.Errorf("pass %d: %d round trips", pass, trips)
		}
		if after.Swapped == before.Swapped {
			t.Errorf("pass %d: nothing was swapped", pass)
		}
	}
}

// What was packed is old where another node has hit since: nothing is counted twice or lost.
func TestPackedRowsOfTwoNodes(t *testing.T) {
	const customers, hits = 12, 600
	url := packedWorld(t, customers)
	var nodes [2]*Catalog
	var engines [2]*quota.Engine
	for n := range nodes {
		o := testOptions()
		o.Customers = 1 + n
		nodes[n] = idleCatalog(t, url, o)
		engines[n] = planstest.OpenEngine(t, url, storeOf(nodes[n]).Pool(), nodes[n].Fresh)
	}
	r := rand.New(rand.NewPCG(20261122, 1))
	made := make(map[string]int64)
	for range hits {
		n, customer, meter := r.IntN(2), r.IntN(customers), []string{"api", "jobs"}[r.IntN(2)]
		hitOne(t, nodes[n], engines[n], customer, meter)
		made[fmt.Sprint("c", customer, meter)]++
	}
	for i := range customers {
		for _, meter := range []string{"api", "jobs"} {
			target, err := nodes[0].Resolve(t.Context(), fmt.Sprint("c", i), meter, 0)
			if err != nil {
				t.Fatal(err)
			}
			s, err := engines[0].StandingsIn(t.Context(), nil, []*model.Target{target})
			if want := made[fmt.Sprint("c", i, meter)]; err != nil || s[0].PeriodUsed != want {
				t.Errorf("c%d has used %d of %s, not %d; %v", i, s[0].PeriodUsed, meter, want, err)
			}
		}
	}
	if lost := engines[0].Stats().SwapsLost + engines[1].Stats().SwapsLost; lost == 0 {
		t.Error("no packed row was old")
	}
}
