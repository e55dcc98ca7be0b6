package admin

import (
	"slices"
	"testing"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

func optionsOf(fields []planField, name string) []string {
	at := slices.IndexFunc(fields, func(f planField) bool { return f.Name == name })
	return slices.Sorted(slices.Values(fields[at].Options))
}

// TestEditorOffersEach: each algorithm and each price model can be chosen in the editor.
func TestEditorOffersEach(t *testing.T) {
	if got := optionsOf(limitFields, "algorithm"); !slices.Equal(got, slices.Sorted(slices.Values(model.AlgorithmNames()))) {
		t.Errorf("of algorithms the editor offers %q", got)
	}
	if got := optionsOf(priceFields, "model"); !slices.Equal(got, slices.Sorted(slices.Values(plans.PriceModels()))) {
		t.Errorf("of price models the editor offers %q", got)
	}
}
