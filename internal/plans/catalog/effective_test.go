package catalog

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/plans"
	"quotad/internal/quota/session"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// The sequences of the contract, told one by one.
func TestApplyTo(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s := planstest.NewStore(t, url)
	c := idleCatalog(t, url, testOptions())
	planstest.Populate(t, s) // version 1 of basic, for all, and acme on it
	force := func(customer string, want int) {
		t.Helper()
		stored := planstest.Must[*plans.Customer](t)(s.GetCustomer(t.Context(), customer))
		if err := c.CatchUp(t.Context(), planstest.ChangeNumber(t, s)); err != nil {
			t.Fatal(err)
		}
		account, err := c.Meters(t.Context(), customer)
		if err != nil || stored.EffectiveVersion != want || account.Plan.Version != want {
			t.Errorf("%s: stored %d, remembered %+v, want %d; %v", customer, stored.EffectiveVersion, account, want, err)
		}
	}
	write := func(applyTo string) {
		t.Helper()
		in := planstest.Hourly(5)
		in.ApplyTo = applyTo
		planstest.PutPlan(t, s, "basic", in)
	}
	write("new") // 2
	force("acme", 1)
	planstest.PutCustomer(t, s, "late", planstest.OnPlan("basic"))
	force("late", 2)
	pinned := planstest.OnPlan("basic")
	pinned.PlanVersion = planstest.Ptr(1)
	planstest.PutCustomer(t, s, "pinned", pinned)
	force("pinned", 1)
	write("all") // 3
	write("new") // 4
	force("acme", 3)
	force("late", 3)
	force("pinned", 1)
	planstest.PutCustomer(t, s, "later", planstest.OnPlan("basic"))
	force("later", 4)

	// An edit is no new joining; unpinning goes back to what joining gave.
	planstest.PutCustomer(t, s, "acme", planstest.OnPlan("basic"))
	force("acme", 3)
	planstest.PutCustomer(t, s, "pinned", planstest.OnPlan("basic"))
	force("pinned", 3)

	// Another plan is joined at its latest version, and so is the first one again.
	planstest.PutPlan(t, s, "other", planstest.Hourly(1))
	planstest.PutCustomer(t, s, "acme", planstest.OnPlan("other"))
	force("acme", 1)
	planstest.PutCustomer(t, s, "acme", planstest.OnPlan("basic"))
	force("acme", 4)

	// A plan whose every version is for new customers.
	in := planstest.Hourly(1)
	in.ApplyTo = "new"
	planstest.PutPlan(t, s, "fresh", in)
	planstest.PutCustomer(t, s, "late", planstest.OnPlan("fresh"))
	planstest.PutPlan(t, s, "fresh", in)
	force("late", 1)
}

// modelCustomer is the naive recount: who joined when, and then every
// version since, one after the other.
type modelCustomer struct {
	plan   string
	joined int
	pinned int
}

func (c *modelCustomer) effective(plans map[string][]string) int {
	if c.pinned > 0 {
		return c.pinned
	}
	effective := c.joined
	for n := c.joined + 1; n <= len(plans[c.plan]); n++ {
		if plans[c.plan][n-1] == "all" {
			effective = n
		}
	}
	return effective
}

var rapidRuns atomic.Int64

// Any sequence of writes: what the store says, what a running catalog says and what an
// empty catalog says is what the recount says, and so is the limit that hits meet.
func TestEffectiveVersionsAgreeWithARecount(t *testing.T) {
	t.Parallel()
	effectiveVersions(t, 25)
}

// TestMoreEffectiveVersions plays more sequences.
func TestMoreEffectiveVersions(t *testing.T) {
	t.Parallel()
	effectiveVersions(t, 75)
}

// effectiveVersions plays at most this many of the sequences that rapid draws.
func effectiveVersions(t *testing.T, most int) {
	t.Helper()
	url := pgtest.NewDatabase(t)
	s := planstest.NewStore(t, url)
	planstest.Declare(t, s, "api")
	running := start(t, idleCatalog(t, url, testOptions()))
	empty := planstest.NewStore(t, url)
	played, failed := 0, false
	rapid.Check(t, func(rt *rapid.T) {
		if played++; played > most && !failed { // rapid plays a failed sequence again, to shorten it
			return
		}
		defer func() { failed = failed || rt.Failed() }()
		run := rapidRuns.Add(1)
		name := func(kind string, n int) string { return fmt.Sprintf("%s-%d-%d", kind, run, n) }
		written, customers := map[string][]string{}, map[string]*modelCustomer{}
		anyPlan := func() string { return name("plan", rapid.IntRange(0, 1).Draw(rt, "plan")) }
		writePlan := func(plan, applyTo string) {
			in := planstest.Hourly(int64(1000 + len(written[plan]) + 1))
			in.ApplyTo = applyTo
			planstest.PutPlan(t, s, plan, in)
			written[plan] = append(written[plan], applyTo)
		}
		writePlan(name("plan", 0), "all")
		writePlan(name("plan", 1), "new")
		rt.Repeat(map[string]func(*rapid.T){
			"plan": func(rt *rapid.T) {
				writePlan(anyPlan(), rapid.SampledFrom([]string{"all", "new"}).Draw(rt, "apply_to"))
			},
			"customer": func(rt *rapid.T) {
				key, plan := name("customer", rapid.IntRange(0, 2).Draw(rt, "customer")), anyPlan()
				in := planstest.OnPlan(plan)
				pin := rapid.IntRange(0, len(written[plan])).Draw(rt, "pin")
				if pin > 0 {
					in.PlanVersion = &pin
				}
				old := customers[key]
				customers[key] = &modelCustomer{plan, len(written[plan]), pin}
				if old != nil && old.plan == plan {
					customers[key].joined = old.joined
				}
				planstest.PutCustomer(t, s, key, in)
			},
			"": func(rt *rapid.T) {
				newest := planstest.ChangeNumber(t, s)
				for key, model := range customers {
					want := model.effective(written)
					stored := planstest.Must[*plans.Customer](t)(s.GetCustomer(t.Context(), key))
					if stored.EffectiveVersion != want {
						rt.Fatalf("%s: the store says %d, the recount %d", key, stored.EffectiveVersion, want)
					}
					agrees(rt, running, key, newest, want)
				}
			},
		})
		fresh := New(empty.Pool(), testOptions())
		for key, model := range customers {
			agrees(rt, fresh, key, 0, model.effective(written))
		}
	})
}

func agrees(rt *rapid.T, c *Catalog, customer string, atLeast int64, version int) {
	target, err := c.Resolve(rt.Context(), customer, "api", atLeast)
	for tries := 0; errors.Is(err, session.ErrUnavailable) && tries < 10; tries++ { // the machine is busy
		target, err = c.Resolve(rt.Context(), customer, "api", atLeast)
	}
	if err != nil || planstest.LimitOf(target) != int64(1000+version) {
		rt.Fatalf("%s: version %d, resolved %+v, %v", customer, version, target, err)
	}
}
