package plans

import "maps"

// withFeatures is the plan with a customer's features over its own: the plan itself where
// the customer has none, else a copy that shares all the rest.
func (p *Plan) withFeatures(own map[string]any) *Plan {
	if len(own) == 0 {
		return p
	}
	merged := *p
	merged.Features = make(map[string]any, len(p.Features)+len(own))
	maps.Copy(merged.Features, p.Features)
	maps.Copy(merged.Features, own)
	return &merged
}
