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

// TestEditorOffersEach demands that the editor offers each algorithm, each price model and each level that is billed.
func TestEditorOffersEach(t *testing.T) {
	if got := optionsOf(limitFields, "algorithm"); !slices.Equal(got, slices.Sorted(slices.Values(model.AlgorithmNames()))) {
		t.Errorf("of algorithms the editor offers %q", got)
	}
	if got := optionsOf(priceFields, "model"); !slices.Equal(got, slices.Sorted(slices.Values(plans.PriceModels()))) {
		t.Errorf("of price models the editor offers %q", got)
	}
	if got := optionsOf(priceFields, "level_by"); !slices.Equal(got, slices.Sorted(slices.Values(plans.LevelsBy()))) {
		t.Errorf("of levels that are billed the editor offers %q", got)
	}
}
