package portal

import (
	"slices"
	"strings"
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

// Tiers count after the included units, and the words of each tier say so.
func TestTiersAfterIncludedUnits(t *testing.T) {
	first, second := int64(1000), int64(5000)
	p := client.Price{Included: 1000, Tiers: []client.Tier{{UpTo: &first, UnitPrice: "0.01"}, {UpTo: &second, UnitPrice: "0.02"}, {UnitPrice: "0.03"}}}
	for model, want := range map[string]string{
		"graduated": "1,000 requests included, then; the next 1,000: $0.01 each; the next 4,000: $0.02 each; beyond that: $0.03 each",
		"volume": "1,000 requests included, then; all units beyond these at the price of the tier that they reach:; up to 1,000: $0.01 each; " +
			"up to 5,000: $0.02 each; above 5,000: $0.03 each",
	} {
		p.Model = model
		if got := strings.Join(priceWords(&p, "USD", "request"), "; "); got != want {
			t.Errorf("%s: %s", model, got)
		}
	}
}
