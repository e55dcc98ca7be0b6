package rating

import (
	"math/big"
	"os"
	"strings"
	"testing"

	"quotad/internal/plans"
)

// TestEachModelIsRated: no price that a plan may have is left without a formula or a vector.
func TestEachModelIsRated(t *testing.T) {
	vectors, err := os.ReadFile("testdata/vectors/rating/models.json")
	if err != nil {
		t.Fatal(err)
	}
	amount, size := "0.05", int64(10)
	for _, model := range plans.PriceModels() {
		rated := false
		for _, p := range []plans.Price{{UnitPrice: &amount}, {PackagePrice: &amount, PackageSize: &size}, {Tiers: []plans.Tier{{UnitPrice: amount}}}} {
			p.Model = model
			if plans.CheckPrice(&p) != nil { // another model's fields
				continue
			}
			price, err := Compile(p, 2)
			if err != nil {
				t.Fatal(err)
			}
			line, err := price.Rate(40_000, Span{Start: 0, End: 10, From: 0, To: 10})
			if err != nil || line.AmountMinor <= 0 {
				t.Errorf("40,000 units by %s cost %d, %v", model, line.AmountMinor, err)
			}
			rated = true
		}
		if !strings.Contains(string(vectors), `"model": "`+model+`"`) {
			t.Errorf("%s has no vector", model)
		}
		if !rated {
			t.Errorf("%s: give it its fields here", model)
		}
	}
}

// TestEachLevelIsRated demands a level of its own of each value of level_by, and that no other value is billed.
func TestEachLevelIsRated(t *testing.T) {
	amount, seen := "0.05", map[string]string{}
	for _, by := range plans.LevelsBy() {
		price, err := Compile(plans.Price{Model: "per_unit", UnitPrice: &amount, LevelBy: by}, 2)
		if err != nil {
			t.Errorf("the level by %s is not computed: %v", by, err)
			continue
		}
		level := price.Level(Held{Integral: big.NewInt(20), Peak: 7, Last: 5}, 10).String()
		if other, ok := seen[level]; ok {
			t.Errorf("the level by %s is that by %s", by, other)
		}
		seen[level] = by
	}
	if _, err := Compile(plans.Price{Model: "per_unit", UnitPrice: &amount, LevelBy: "median"}, 2); err == nil {
		t.Error("a level that nobody computes is billed")
	}
}
