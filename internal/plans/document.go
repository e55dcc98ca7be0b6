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
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // features: a float64 would round integers from 2⁵³ on
	if err := decoder.Decode(&in); err != nil {
		return PlanInput{}, fmt.Errorf("a stored plan cannot be read: %w", err)
	}
	for key, value := range in.Features {
		if n, ok := value.(json.Number); ok {
			in.Features[key], _ = feature(n)
		}
	}
	return in, nil
}
