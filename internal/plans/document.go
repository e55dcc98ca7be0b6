package plans

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// document is a checked plan as it is stored.
func (in *PlanInput) document() ([]byte, error) { return json.Marshal(in) }

// readDocument is the inverse of document: the same integers, strings and numbers.
func readDocument(raw []byte) (in PlanInput, err error) {
	if err := readStored(raw, &in); err != nil {
		return PlanInput{}, err
	}
	restoreNumbers(in.Features)
	return in, nil
}

// readStored reads stored JSON, numbers as they were written.
func readStored(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // features: a float64 would round integers from 2⁵³ on
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("what is stored cannot be read: %w", err)
	}
	return nil
}

// readFeatures reads a customer's features as they were checked.
func readFeatures(raw []byte) (features map[string]any, err error) {
	err = readStored(raw, &features)
	restoreNumbers(features)
	return features, err
}

// restoreNumbers gives stored features the form that checked ones have.
func restoreNumbers(features map[string]any) {
	for key, value := range features {
		if n, ok := value.(json.Number); ok {
			features[key], _ = feature(n)
		}
	}
}
