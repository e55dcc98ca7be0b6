package plans

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"quotad/internal/quota/model"
)

// Limits on the features of a plan or a customer.
const (
	maxFeatures = 100
	maxFeature  = 500 // bytes of a feature whose value is a string
)

// WithFeatures returns the plan with a customer's features merged over the plan's own. If the customer
// has no features, the result is the plan itself. Otherwise the result is a copy that shares all other
// fields.
func (p *Plan) WithFeatures(own map[string]any) *Plan {
	if len(own) == 0 {
		return p
	}
	merged := *p
	merged.Features = make(map[string]any, len(p.Features)+len(own))
	maps.Copy(merged.Features, p.Features)
	maps.Copy(merged.Features, own)
	return &merged
}

// checkFeatures returns a copy of a plan's or a customer's features in the stored form. The result is
// never nil.
func checkFeatures(bad *faults, given map[string]any) map[string]any {
	features := make(map[string]any, len(given))
	if len(given) > maxFeatures {
		bad.add("features", "must be at most %d", maxFeatures)
		return features
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !ValidName(key) {
			bad.add("features", "%q is not a name: it %s", Shorten(key), NameRule)
			continue
		}
		value, fault := feature(given[key])
		if fault != "" {
			bad.add("features."+key, "%s", fault)
		}
		features[key] = value
	}
	return features
}

const featureRule = "must be true, false, a string of at most 500 bytes, or a number of at most 15 digits before and 12 after the point"

// feature checks the value of a feature and returns its stored form: a bool, a string, an int64, or a
// json.Number for a fraction. A float64 must be a whole number of at most MaxNumber, because other
// float64 values could not be read back as they were written.
func feature(v any) (value any, fault string) {
	switch v := v.(type) {
	case bool:
		return v, ""
	case string:
		if len(v) <= maxFeature && PlainText(v) {
			return v, ""
		}
	case int:
		return feature(int64(v))
	case int64:
		if -model.MaxNumber <= v && v <= model.MaxNumber {
			return v, ""
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= float64(model.MaxNumber) {
			return int64(v), ""
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return feature(n)
		}
		digits := strings.TrimPrefix(v.String(), "-")
		if !isDecimal(digits) {
			break
		}
		if strings.Trim(digits, "0.") == "" {
			return json.Number(digits), "" // jsonb has no -0
		}
		return v, ""
	}
	return nil, featureRule
}
