package assembly

import (
	"testing"

	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

// TestEachLevelHasWords demands that a line of usage says which level was billed.
func TestEachLevelHasWords(t *testing.T) {
	level, err := rating.ReadLevel("3.500000")
	if err != nil {
		t.Fatal(err)
	}
	plain, seen := heldText("", level, "seat"), map[string]string{}
	for _, by := range plans.LevelsBy() {
		text := heldText(by, level, "seat")
		if other, ok := seen[text]; ok || text == plain {
			t.Errorf("of the level by %s a line says %q, as of the level by %q", by, text, other)
		}
		seen[text] = by
	}
}
