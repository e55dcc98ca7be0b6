package portal

import (
	"slices"
	"testing"

	"quotad/client"
	"quotad/internal/plans"
)

// TestPagesKnowEachPriceModel demands words of each price model, and of each level that is billed.
func TestPagesKnowEachPriceModel(t *testing.T) {
	amount, size := "0.05", int64(100)
	for _, name := range plans.PriceModels() {
		p := client.Price{Model: name, UnitPrice: &amount, PackageSize: &size, PackagePrice: &amount, Tiers: []client.Tier{{UnitPrice: amount}}}
		if words := priceWords(&p, "EUR", "request"); slices.Contains(words, name) {
			t.Errorf("%s has no words: %q", name, words)
		}
	}
	plain := priceWords(&client.Price{Model: "per_unit", UnitPrice: &amount}, "EUR", "seat")
	for _, by := range plans.LevelsBy() {
		if words := priceWords(&client.Price{Model: "per_unit", UnitPrice: &amount, LevelBy: by}, "EUR", "seat"); slices.Equal(words, plain) {
			t.Errorf("the level by %s has no words", by)
		}
	}
}
