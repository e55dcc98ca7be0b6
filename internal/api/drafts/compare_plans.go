package drafts

import (
	"maps"
	"slices"
	"strconv"

	"quotad/internal/billing/compare"
	"quotad/internal/plans"
)

// maxCompared is the maximum number of plan versions in force in one comparison.
const maxCompared = 200

// inForce returns a version of a plan. The version is read once for all customers on it.
func (x *comparison) inForce(key string, version int) (*plans.Plan, *compare.Plan, error) {
	name := key + "/" + strconv.Itoa(version)
	if known, ok := x.versions[name]; ok {
		return known.plan, known.compiled, nil
	}
	if len(x.versions) >= maxCompared {
		return nil, nil, errManyVersions
	}
	plan, err := x.server.Store.GetPlanVersion(x.ctx, key, version)
	if err != nil {
		return nil, nil, err
	}
	compiled, err := compare.Compile(plan)
	if err != nil {
		return nil, nil, err
	}
	x.versions[name] = planInForce{plan, compiled}
	return plan, compiled, nil
}

type planInForce struct {
	plan     *plans.Plan
	compiled *compare.Plan
}

// comparedMeter is a meter that one of the plans names in a limit or a price.
type comparedMeter struct {
	key string
	id  int32
}

// plansOf returns the draft and the plans in force of customers.
func (x *comparison) plansOf(customers []*compared) []*plans.Plan {
	all := []*plans.Plan{x.draft}
	for _, c := range customers {
		if !slices.Contains(all, c.plan) {
			all = append(all, c.plan)
		}
	}
	return all
}

// metersOf returns, by key, the meters that the draft or a plan in force names. Meters without a limit or a
// price are left out, because they cost nothing and refuse nothing.
func (x *comparison) metersOf(customers []*compared) (meters []comparedMeter, err error) {
	named := make(map[string]bool)
	for _, p := range x.plansOf(customers) {
		for i := range p.Limits {
			named[p.Limits[i].Meter] = true
		}
		for i := range p.Prices {
			named[p.Prices[i].Meter] = true
		}
	}
	for _, c := range customers {
		for meter := range c.Prices {
			named[meter] = true
		}
	}
	keys := slices.Sorted(maps.Keys(named))
	ids, err := x.server.Store.MeterIDs(x.ctx, keys)
	for _, key := range keys {
		if id, there := ids[key]; there {
			meters = append(meters, comparedMeter{key, id})
		}
	}
	return meters, err
}
