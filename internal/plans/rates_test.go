package plans

import (
	"math/rand/v2"
	"slices"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
)

// TestLastEditsAreRemembered: of a random course of versions, overrides and their ends, a limit remembers
// the last 8 edits that were, and the slowest rate before them. An end that is yet to come costs none.
func TestLastEditsAreRemembered(t *testing.T) {
	const most = 8
	seed := testkit.Seed(t)
	ended, replaced := 0, 0
	for run := range uint64(3000) {
		draw := rand.New(rand.NewPCG(seed+run, 11))
		number := func() int64 { return draw.Int64N(5) * draw.Int64N(50) }
		at, change := int64(0), int64(0)
		var editions []Edition
		var own *OwnRates
		var override *StoredOverride
		var all model.Rates // each edit that was, by hand
		plan := func() model.Rates { return PlanRates(editions, 1, 0, "a", nil) }
		edition := func() {
			editions = append(editions, Edition{Version: len(editions) + 1, All: true, At: at, Limits: map[string]int64{"a": number()}})
		}
		edition()
		all = all.Then(model.Always, editions[0].Limits["a"])
		for range 30 {
			at, change = at+1+draw.Int64N(100), change+1
			last := editions[len(editions)-1].Limits["a"]
			if override != nil && override.ExpiresAt != nil && *override.ExpiresAt <= at {
				all, override = all.Then(*override.ExpiresAt, last), nil
				ended++
			}
			switch was := own.RatesOver(plan(), nil).Before(at).Latest(); draw.IntN(4) {
			case 0:
				if edition(); override == nil {
					all = all.Then(at, editions[len(editions)-1].Limits["a"])
				}
			default:
				if override != nil {
					replaced++
				}
				if override = nil; draw.IntN(4) > 0 {
					override = &StoredOverride{Limit: number()}
					if end := at + 1 + draw.Int64N(300); draw.IntN(3) > 0 {
						override.ExpiresAt = &end
					}
					last = override.Limit
				}
				all = all.Then(at, last)
				if changed, plain := ChangedRates(change, at, was, plan(), override); changed != nil || plain {
					own = changed
				}
			}
			got := own.RatesOver(plan(), nil).Before(at + 1).Latest()
			want := all
			if n := len(all) - 1 - most; n > 0 {
				slowest := slices.MinFunc(all[:n+1], func(a, b model.Rate) int { return int(a.Limit - b.Limit) })
				want = slices.Concat(model.Rates{{From: model.Always, Limit: slowest.Limit}}, all[n+1:])
			}
			alike := func(a, b model.Rate) bool { return a.Limit == b.Limit } // an edit that changes nothing is none
			got, want = slices.CompactFunc(slices.Clone(got), alike), slices.CompactFunc(slices.Clone(want), alike)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: at %d the limit was %v, want %v of %v", seed+run, at, got, want, all)
			}
		}
	}
	if ended < 100 || replaced < 100 {
		t.Errorf("%d overrides ended, and %d were replaced", ended, replaced)
	}
}
