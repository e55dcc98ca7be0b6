package accounts

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/cache"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
)

// maxVersions is the maximum number of plan versions in memory. A version with a hundred tiered prices takes
// some 100 KB.
const maxVersions = 1000

// VersionKey identifies a plan version.
type VersionKey struct {
	plan    int32
	version int
}

// Version is a plan version with its parsed prices. A version and the ids of its meters never change.
type Version struct {
	*plans.Plan
	id     int32 // the plan's id
	prices *assembly.Plan
	meters map[string]int32 // ids, by key, of the meters that the plan names
}

// Versions is the cache of plan versions.
type Versions struct {
	kept *cache.Cache[VersionKey, *Version]
}

// NewVersions returns an empty cache.
func NewVersions() *Versions {
	kept, err := cache.New[VersionKey, *Version](maxVersions)
	if err != nil {
		panic("accounts: " + err.Error()) // the size is a constant
	}
	return &Versions{kept}
}

const readVersions = `
	SELECT v.plan_id, p.key, v.version, v.created_at, v.document
	FROM unnest($1::integer[], $2::integer[]) AS w (plan_id, version)
	JOIN plan_versions v ON v.plan_id = w.plan_id AND v.version = w.version
	JOIN plans p ON p.id = v.plan_id`

// Found contains plan versions by their keys.
type Found map[VersionKey]*Version

// Get returns plan versions, from the cache or with one statement. All keys must exist.
func (vs *Versions) Get(ctx context.Context, q postgres.Querier, keys []VersionKey) (Found, error) {
	all := make(Found)
	var ids []int32
	var numbers []int
	for _, k := range keys {
		if _, there := all[k]; there {
			continue
		}
		v, ok := vs.kept.Get(k, 0)
		if all[k] = v; !ok {
			ids, numbers = append(ids, k.plan), append(numbers, k.version)
		}
	}
	if len(ids) == 0 {
		return all, nil
	}
	rows, _ := q.Query(ctx, readVersions, ids, numbers) // CollectRows returns the error of a failed Query
	read, err := pgx.CollectRows(rows, scanVersion)
	if err != nil {
		return nil, err
	}
	var named []string
	for _, v := range read {
		named = append(named, v.MeterKeys()...)
	}
	meters, err := store.MeterIDs(ctx, q, named)
	if err != nil {
		return nil, err
	}
	for _, v := range read {
		for _, key := range v.MeterKeys() {
			v.meters[key] = meters[key]
		}
		k := VersionKey{v.id, v.Version}
		all[k] = v
		vs.kept.Add(k, v, cache.NoExpiry)
	}
	for k, v := range all {
		if v == nil {
			return nil, fmt.Errorf("version %d of plan %d: %w", k.version, k.plan, plans.ErrUnknownVersion)
		}
	}
	return all, nil
}

func scanVersion(row pgx.CollectableRow) (*Version, error) {
	v := &Version{Plan: new(plans.Plan), meters: make(map[string]int32)}
	var document []byte
	if err := row.Scan(&v.id, &v.Key, &v.Version, &v.CreatedAt, &document); err != nil {
		return nil, err
	}
	v.CreatedAt = v.CreatedAt.UTC()
	var err error
	if v.PlanInput, err = plans.ReadDocument(document); err == nil {
		v.prices, err = assembly.Compile(v.Key, v.Version, &v.PlanInput)
	}
	return v, err
}

// PricedBy returns the key of the plan version that prices a period.
func PricedBy(p *billing.Period) VersionKey { return VersionKey{p.PlanID, p.Version} }

// VersionsOf returns the keys of the plan versions that Terms needs for a period: the version that prices the
// period, and the versions of the base prices that cover it.
func VersionsOf(p *billing.Period) []VersionKey {
	keys := []VersionKey{PricedBy(p)}
	for b := p.Base; b != nil; b = b.Over {
		keys = append(keys, VersionKey{b.PlanID, b.Version})
	}
	return keys
}

// Terms returns the pricing terms of a period.
func (vs Found) Terms(p *billing.Period) assembly.Terms {
	t := assembly.Terms{Period: *p, Plan: vs[PricedBy(p)].prices}
	if b := p.Base; b != nil {
		t.BasePlan = vs[VersionKey{b.PlanID, b.Version}].prices
		if b.Over != nil {
			t.OverPlan = vs[VersionKey{b.Over.PlanID, b.Over.Version}].prices
		}
	}
	return t
}

// PricedMeters returns the ids of the meters in a period's terms. The result may contain other meters.
func (as *Accounts) PricedMeters(ctx context.Context, q postgres.Querier, t *assembly.Terms) (map[string]int32, error) {
	versions, err := as.Versions.Get(ctx, q, []VersionKey{PricedBy(&t.Period)})
	if err != nil {
		return nil, err
	}
	ids := versions[PricedBy(&t.Period)].meters
	var missing []string
	for meter := range t.Period.Prices {
		if ids[meter] == 0 {
			missing = append(missing, meter)
		}
	}
	if len(missing) == 0 {
		return ids, nil
	}
	others, err := store.MeterIDs(ctx, q, missing)
	if err == nil {
		maps.Copy(others, ids)
	}
	return others, err
}
