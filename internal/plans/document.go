package plans

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Document returns a checked plan in its stored form.
func (in *PlanInput) Document() ([]byte, error) { return json.Marshal(in) }

// ReadDocument is the inverse of Document and restores the same integers, strings and numbers.
func ReadDocument(raw []byte) (in PlanInput, err error) {
	if err := ReadStored(raw, &in); err != nil {
		return PlanInput{}, err
	}
	restoreNumbers(in.Features)
	return in, nil
}

// ReadStored decodes stored JSON and keeps numbers as they were written.
func ReadStored(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // features need this: a float64 would round integers from 2⁵³ on
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("what is stored cannot be read: %w", err)
	}
	return nil
}

// ReadFeatures reads a customer's stored features into the form that checkFeatures returned.
func ReadFeatures(raw []byte) (features map[string]any, err error) {
	err = ReadStored(raw, &features)
	restoreNumbers(features)
	return features, err
}

// restoreNumbers converts the numbers of stored features to the form that checked features have.
func restoreNumbers(features map[string]any) {
	for key, value := range features {
		if n, ok := value.(json.Number); ok {
			features[key], _ = feature(n)
		}
	}
}

// Costs reports whether a plan has a cost, which is a base price, a minimum, or a price of a meter above
// 0.
func (in *PlanInput) Costs() bool {
	if in.BasePriceMinor > 0 || in.MinimumMinor > 0 {
		return true
	}
	return slices.ContainsFunc(in.Prices, func(price Price) bool {
		amounts := []*string{price.UnitPrice, price.PackagePrice}
		for i := range price.Tiers {
			amounts = append(amounts, &price.Tiers[i].UnitPrice, price.Tiers[i].FlatPrice)
		}
		costs := func(amount *string) bool { return amount != nil && strings.Trim(*amount, "0.") != "" }
		return price.MinimumMinor != nil && *price.MinimumMinor > 0 || slices.ContainsFunc(amounts, costs)
	})
}
