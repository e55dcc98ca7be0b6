package plans

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/guide/limits-of-the-service.md says the bounds as they are here.
func TestBoundsAreAsWritten(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/limits-of-the-service.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		fmt.Sprintf("| limits of a plan | %d |", maxLimits),
		fmt.Sprintf("| limits of a plan on one meter | %d |", maxOnMeter),
		fmt.Sprintf("| prices, and tiers of a price | %d each |", maxPrices),
		fmt.Sprintf("| meters that a plan names beside those of its limits and prices | %d,%03d |", maxMeters/1000, maxMeters%1000),
		fmt.Sprintf("| features of a plan or customer | %d, texts of %d bytes |", maxFeatures, maxFeature),
		fmt.Sprintf("| metadata of a customer | %d entries, names of %d bytes, values of %d bytes |", maxMetadata, maxMetadataKey, maxMetadataValue),
		fmt.Sprintf("| keys of customers, meters, plans and limits | %d bytes |", maxKey),
	} {
		if !strings.Contains(string(page), "\n"+row) {
			t.Errorf("the page does not say %s", row)
		}
	}
	if maxTiers != maxPrices {
		t.Error("prices and tiers have two bounds, and the page has one")
	}
}
