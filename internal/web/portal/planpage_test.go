package portal

import (
	"slices"
	"testing"

	"quotad/client"
	"quotad/internal/plans"
)

// TestPagesKnowEachPriceModel: each has words of its own.
func TestPagesKnowEachPriceModel(t *testing.T) {
	amount, size := "0.05", int64(100)
	for _, name := range plans.PriceModels() {
		p := client.Price{Model: name, UnitPrice: &amount, PackageSize: &size, PackagePrice: &amount, Tiers: []client.Tier{{UnitPrice: amount}}}
		if words := priceWords(&p, "EUR", "request"); slices.Contains(words, name) {
			t.Errorf("%s has no words: %q", name, words)
		}
	}
}
