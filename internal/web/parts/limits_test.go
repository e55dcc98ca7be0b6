package parts

import (
	"strings"
	"testing"

	"quotad/client"
	"quotad/internal/plans"
	"quotad/internal/web/words"
)

// TestPagesKnowEachPriceModel: each has a name in words, and pages say what a unit beyond a soft limit
// costs where one price says it.
func TestPagesKnowEachPriceModel(t *testing.T) {
	amount, size := "0.05", int64(100)
	each := map[string]string{"per_unit": words.PerUnit(amount, "EUR"), "package": "goes on", "graduated": "goes on", "volume": "goes on"}
	for _, name := range plans.PriceModels() {
		if text := words.Plainly(name); strings.Contains(text, "_") {
			t.Errorf("texts of the API say %s", text)
		}
		p := client.Price{Meter: "api", Model: name, UnitPrice: &amount, PackageSize: &size, PackagePrice: &amount, Tiers: []client.Tier{{UnitPrice: amount}}}
		if got := beyond(&client.Plan{PlanInput: client.PlanInput{Currency: "EUR", Prices: []client.Price{p}}}, "api"); got != each[name] {
			t.Errorf("a unit beyond a limit by %s: %q, want %q", name, got, each[name])
		}
	}
}
