package store

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// The functions below record the past refill rates of a customer's token buckets when an override, or a
// change of plan or pin, changes these rates.

// tokenBuckets reads the token buckets from the documents of a plan's versions. It reads all token
// buckets, or only the bucket with the given name.
const tokenBuckets = `
	SELECT v.version, v.apply_to = 'all', v.change, (extract(epoch FROM v.created_at) * 1000000)::bigint, l->>'name', (l->>'limit')::bigint
	FROM plans p JOIN plan_versions v ON v.plan_id = p.id,
		jsonb_path_query(v.document, '$.limits[*] ? (@.algorithm == $refilled[*])', jsonb_build_object('refilled', $5::text[])) AS l
	WHERE p.key = $1 AND v.version > $2 AND v.version <= $3 AND ($4 = '' OR l->>'name' = $4) ORDER BY v.version`

// Editions returns the token buckets of a plan's versions above after and up to upTo, in order. Versions
// without token buckets are left out. If only is not empty, Editions reads only the limit with that name.
func Editions(ctx context.Context, from querier, plan string, after, upTo int, only string) (all []plans.Edition, err error) {
	var e plans.Edition
	var limit string
	var n int64
	rows, _ := from.Query(ctx, tokenBuckets, plan, after, upTo, only, model.RefilledAlgorithms())
	_, err = pgx.ForEachRow(rows, []any{&e.Version, &e.All, &e.Change, &e.At, &limit, &n}, func() error {
		if last := len(all) - 1; last < 0 || all[last].Version != e.Version {
			e.Limits = make(map[string]int64)
			all = append(all, e)
		}
		all[len(all)-1].Limits[limit] = n
		return nil
	})
	return all, err
}

// rated contains the present and earlier refill rates of a customer's token buckets.
type rated struct {
	now    int64 // instant of the write, by the customer's clock
	number int64 // number of the change from which the written rates apply
	clock  plans.ClockHistory
	own    map[string]*plans.OwnRates
	joined int
	pinned int
	plan   []plans.Edition  // versions up to the version in force
	limits map[string]int64 // token buckets of the version in force
}

// until returns the rates of a limit up to now.
func (r *rated) until(limit string) model.Rates {
	return r.own[limit].RatesOver(r.planRates(limit), r.clock).Before(r.now).Latest()
}

func (r *rated) planRates(limit string) model.Rates {
	return plans.PlanRates(r.plan, r.joined, r.pinned, limit, r.clock)
}

const readRated = `
	SELECT c.joined_version, coalesce(c.pinned_version, 0), t.history
	FROM customers c LEFT JOIN test_clocks t ON t.id = c.test_clock_id WHERE c.id = $1`

const readOwnRates = `SELECT limit_name, change, at, rates, until FROM limit_rates WHERE customer_id = $1`

// rated reads the refill rates of a customer's token buckets from the stored rows. If only is not empty,
// rated reads the plan's rates of that limit alone.
func (w *Writing) rated(ctx context.Context, c *plans.Customer, only string) (*rated, error) {
	r := &rated{now: w.InstantOf(c), number: w.Number, own: make(map[string]*plans.OwnRates)}
	if err := w.QueryRow(ctx, readRated, c.ID).Scan(&r.joined, &r.pinned, &r.clock); err != nil {
		return nil, err
	}
	var err error
	if r.plan, err = Editions(ctx, w, c.Plan, 0, c.EffectiveVersion, only); err != nil {
		return nil, err
	}
	if last := len(r.plan) - 1; last >= 0 && r.plan[last].Version == c.EffectiveVersion {
		r.limits = r.plan[last].Limits
	}
	var own plans.OwnRates
	var limit string
	rows, _ := w.Query(ctx, readOwnRates, c.ID)
	_, err = pgx.ForEachRow(rows, []any{&limit, &own.Change, &own.At, &own.Rates, &own.Until}, func() error {
		one := own
		r.own[limit] = &one
		return nil
	})
	return r, err
}

const putRates = `
	INSERT INTO limit_rates (customer_id, limit_name, change, at, rates, until) VALUES ($1, $2, $3, $4, $5, $6)
	ON CONFLICT (customer_id, limit_name) DO UPDATE SET
		change = excluded.change, at = excluded.at, rates = excluded.rates, until = excluded.until`

const dropRates = `DELETE FROM limit_rates WHERE customer_id = $1 AND limit_name = $2`

// keepRates records the rates of a customer's limits up to now, because a write of an override, plan or
// pin changes them. Limits other than token buckets are left out. was is read before that write, and is
// after it. overrides contains the overrides that apply from now on, by limit name.
func (w *Writing) keepRates(ctx context.Context, customer int64, was, is *rated, limits []string, overrides map[string]*plans.StoredOverride) error {
	var batch pgx.Batch
	for _, limit := range limits {
		if _, there := is.limits[limit]; !there {
			continue
		}
		switch own, plain := plans.ChangedRates(was.number, was.now, was.until(limit), is.planRates(limit), overrides[limit]); {
		case plain:
			batch.Queue(dropRates, customer, limit)
		case own != nil:
			batch.Queue(putRates, customer, limit, own.Change, own.At, own.Rates, own.Until)
		}
	}
	return w.SendBatch(ctx, &batch).Close()
}

// keepOverridden is keepRates for a write or deletion of an override. For a limit that is no token
// bucket, it reads the version in force alone.
func (w *Writing) keepOverridden(ctx context.Context, c *plans.Customer, limit string, o *plans.StoredOverride) error {
	inForce, err := Editions(ctx, w, c.Plan, c.EffectiveVersion-1, c.EffectiveVersion, limit)
	if err != nil {
		return err
	}
	if len(inForce) == 0 { // otherwise a row from its time as a token bucket would outlive the override
		_, err = w.Exec(ctx, dropRates, c.ID, limit)
		return err
	}
	r, err := w.rated(ctx, c, limit)
	if err != nil {
		return err
	}
	overrides := make(map[string]*plans.StoredOverride)
	if o != nil {
		overrides[limit] = o
	}
	return w.keepRates(ctx, c.ID, r, r, []string{limit}, overrides)
}

const dropOtherRates = `DELETE FROM limit_rates WHERE customer_id = $1 AND limit_name <> ALL ($2)`

const ownOverrides = `
	SELECT limit_name, "limit", burst, expires_at FROM overrides
	WHERE customer_id = $1 AND (expires_at IS NULL OR expires_at > $2)`

// keepAllRates is keepRates for a write that changes a customer's plan or pin. The customer's overrides
// are kept.
func (w *Writing) keepAllRates(ctx context.Context, was *rated, c *plans.Customer) error {
	plan, err := one(ctx, w, plans.ErrUnknownVersion, scanPlan, getPlanVersion, c.Plan, int64(c.EffectiveVersion))
	if err != nil {
		return err
	}
	overrides := make(map[string]*plans.StoredOverride)
	var limit string
	var o plans.StoredOverride
	rows, _ := w.Query(ctx, ownOverrides, c.ID, was.now)
	_, err = pgx.ForEachRow(rows, []any{&limit, &o.Limit, &o.Burst, &o.ExpiresAt}, func() error {
		if stored := o; stored.InForce(plan, limit, was.now) {
			overrides[limit] = &stored
		}
		return nil
	})
	if err != nil {
		return err
	}
	is, err := w.rated(ctx, c, "")
	if err != nil {
		return err
	}
	limits := slices.AppendSeq([]string{}, maps.Keys(is.limits)) // not nil, because nil would become NULL
	if _, err := w.Exec(ctx, dropOtherRates, c.ID, limits); err != nil {
		return err
	}
	return w.keepRates(ctx, c.ID, was, is, limits, overrides)
}
