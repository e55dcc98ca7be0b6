package catalog

import (
	"errors"
	"testing"
	"time"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
	"quotad/internal/testkit/quotatest"
)

func TestOverrides(t *testing.T) {
	t.Parallel()
	s, c := newNode(t, pgtest.NewDatabase(t))
	planstest.Populate(t, s)
	planstest.PutCustomer(t, s, "bolt", planstest.OnPlan("basic"))
	ctx := t.Context()
	before := planstest.Must[*model.Target](t)(c.Resolve(ctx, "acme", "api", 0))
	old := planstest.Must[*plans.Customer](t)(s.GetCustomer(ctx, "acme"))
	expires := planstest.DatabaseNow(t, s).Add(time.Hour).Truncate(time.Microsecond)
	o, created, err := s.PutOverride(ctx, "acme", "hourly", plans.OverrideInput{Limit: 7, ExpiresAt: &expires})
	if err != nil || !created || o.Name != "hourly" || o.Limit != 7 || o.Burst != nil || !o.ExpiresAt.Equal(expires) || !o.InForce {
		t.Fatalf("%+v %v %v", o, created, err)
	}
	changed := planstest.Must[*plans.Customer](t)(s.GetCustomer(ctx, "acme"))
	if changed.Change != planstest.ChangeNumber(t, s) || changed.ETag() == old.ETag() {
		t.Errorf("the customer's change is %d of %d", changed.Change, planstest.ChangeNumber(t, s))
	}
	target := planstest.Must[*model.Target](t)(c.Resolve(ctx, "acme", "api", 0))
	if planstest.LimitOf(target) != 7 || target.Change != changed.Change || target.Limit(0).ID != before.Limit(0).ID {
		t.Errorf("resolved %+v", target.Limit(0))
	}
	if again := planstest.Must[*model.Target](t)(c.Resolve(ctx, "acme", "api", 0)); again != target {
		t.Error("another target for the same")
	}
	if other := planstest.Must[*model.Target](t)(c.Resolve(ctx, "bolt", "api", 0)); other.Limit(0) != before.Limit(0) {
		t.Error("the plan's own limit has changed, or is not shared any more")
	}
	if _, created, err = s.PutOverride(ctx, "acme", "hourly", plans.OverrideInput{Limit: 0}); err != nil || created || meets(t, c, "acme") != 0 {
		t.Errorf("replaced: %v %v, now %d", created, err, meets(t, c, "acme"))
	}
	list := planstest.Must[*plans.List[*plans.Override]](t)(s.ListOverrides(ctx, "acme", plans.Page{}))
	if len(list.Items) != 1 || list.Items[0].Limit != 0 || list.Items[0].ExpiresAt != nil || !list.Items[0].InForce || list.Next != "" {
		t.Errorf("list: %+v", list.Items[0])
	}
	planstest.PutPlan(t, s, "basic", planstest.Hourly(50)) // the override stays
	if got := meets(t, c, "acme"); got != 0 {
		t.Errorf("after a new version: %d", got)
	}
	if err := s.DeleteOverride(ctx, "acme", "hourly"); err != nil || meets(t, c, "acme") != 50 {
		t.Errorf("ended: %v, now %d", err, meets(t, c, "acme"))
	}
	if err := s.DeleteOverride(ctx, "acme", "hourly"); !errors.Is(err, plans.ErrUnknownOverride) {
		t.Errorf("ended twice: %v", err)
	}
}

// Each change of an override lets a target that was resolved before it be told from those
// after it.
func TestOverridesMakeTargetsNewer(t *testing.T) {
	t.Parallel()
	options, now := testOptions(), quotatest.NewClock(time.Now().UnixMicro())
	options.Now = now.Now
	c := start(t, idleCatalog(t, pgtest.NewDatabase(t), options))
	s := storeOf(c)
	planstest.Populate(t, s)
	last := planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0)).Change
	newer := func(what string) {
		t.Helper()
		change := planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0)).Change
		if change <= last || change != planstest.ChangeNumber(t, s) {
			t.Errorf("%s: change %d after %d", what, change, last)
		}
		last = change
	}
	planstest.WriteOverride(t, s, "acme", plans.OverrideInput{Limit: 7})
	newer("written")
	planstest.WriteOverride(t, s, "acme", plans.OverrideInput{Limit: 7})
	newer("written again")
	if err := s.DeleteOverride(t.Context(), "acme", "hourly"); err != nil {
		t.Fatal(err)
	}
	newer("deleted")
	expires := planstest.DatabaseNow(t, s).Add(time.Hour)
	planstest.WriteOverride(t, s, "acme", plans.OverrideInput{Limit: 7, ExpiresAt: &expires})
	newer("with an end")
	now.Set(expires.UnixMicro())
	testkit.Eventually(t, "the end", func() bool { return meets(t, c, "acme") == 5 })
	newer("expired")
}

// The plan moves on, or the customer moves to another: an override that fits no more is
// ignored, and counts again when it fits again.
func TestOverridesThatDoNotFitAreIgnored(t *testing.T) {
	t.Parallel()
	s, c := newNode(t, pgtest.NewDatabase(t))
	planstest.Populate(t, s)
	bucket := planstest.Hourly(10)
	bucket.Limits[0].Algorithm, bucket.Limits[0].Burst = "token_bucket", planstest.Ptr(int64(20))
	planstest.PutPlan(t, s, "basic", bucket)
	planstest.WriteOverride(t, s, "acme", plans.OverrideInput{Limit: 30, Burst: planstest.Ptr(int64(40))})
	is := func(when string, limit, burst int64, inForce bool) {
		t.Helper()
		target := planstest.Must[*model.Target](t)(c.Resolve(t.Context(), "acme", "api", 0))
		if l := target.Limit(0); l.Limit != limit || l.Burst != burst {
			t.Errorf("%s: limit %d, burst %d", when, l.Limit, l.Burst)
		}
		list := planstest.Must[*plans.List[*plans.Override]](t)(s.ListOverrides(t.Context(), "acme", plans.Page{}))
		if len(list.Items) != 1 || list.Items[0].InForce != inForce {
			t.Errorf("%s: shown as %+v", when, list.Items)
		}
	}
	is("on the bucket", 30, 40, true)
	planstest.PutPlan(t, s, "basic", planstest.Hourly(6))
	is("on a window", 6, 0, false)
	renamed := planstest.Hourly(8)
	renamed.Limits[0].Name = "other"
	planstest.PutPlan(t, s, "renamed", renamed)
	planstest.PutCustomer(t, s, "acme", planstest.OnPlan("renamed"))
	is("on a plan without it", 8, 0, false)
	planstest.PutPlan(t, s, "basic", bucket)
	planstest.PutCustomer(t, s, "acme", planstest.OnPlan("basic"))
	is("on the bucket again", 30, 40, true)
	planstest.WriteOverride(t, s, "acme", plans.OverrideInput{Limit: 30})
	is("without a burst of its own", 30, 30, true)
}
