package plans

import (
	"bytes"
	"encoding/json"
	"fmt"

	"quotad/internal/quota"
)

// planDocument is a plan version as it is stored: every default filled in, in the
// contract's names. Stored documents are never rewritten, so fields may be added here
// but never renamed or given another meaning.
type planDocument struct {
	Name           string          `json:"name"`
	Currency       string          `json:"currency"`
	Interval       string          `json:"interval"`
	IntervalCount  int             `json:"interval_count"`
	BasePriceMinor int64           `json:"base_price_minor"`
	Meters         []string        `json:"meters"`
	Features       map[string]any  `json:"features"`
	Limits         []limitDocument `json:"limits"`
	Prices         []priceDocument `json:"prices"`
	ApplyTo        string          `json:"apply_to"`
}

type limitDocument struct {
	Meter     string `json:"meter"`
	Name      string `json:"name"`
	Algorithm string `json:"algorithm"`
	Limit     int64  `json:"limit"`
	Window    string `json:"window,omitempty"`
	Burst     *int64 `json:"burst,omitempty"`
	Align     string `json:"align,omitempty"`
	Precision string `json:"precision,omitempty"`
	Per       string `json:"per,omitempty"`
	Mode      string `json:"mode"`
	OnOutage  string `json:"on_outage"`
}

type priceDocument struct {
	Meter        string         `json:"meter"`
	Model        string         `json:"model"`
	UnitPrice    *string        `json:"unit_price,omitempty"`
	PackageSize  *int64         `json:"package_size,omitempty"`
	PackagePrice *string        `json:"package_price,omitempty"`
	Tiers        []tierDocument `json:"tiers,omitempty"`
	Included     int64          `json:"included"`
}

type tierDocument struct {
	UpTo      *int64  `json:"up_to"`
	UnitPrice string  `json:"unit_price"`
	FlatPrice *string `json:"flat_price,omitempty"`
}

func (in *PlanInput) document() ([]byte, error) {
	d := planDocument{
		Name: in.Name, Currency: in.Currency, Interval: in.Interval, IntervalCount: in.IntervalCount,
		BasePriceMinor: in.BasePriceMinor, Meters: in.Meters, Features: in.Features, ApplyTo: in.ApplyTo,
		Limits: make([]limitDocument, len(in.Limits)), Prices: make([]priceDocument, len(in.Prices)),
	}
	for i, l := range in.Limits {
		d.Limits[i] = limitDocument{
			l.Meter, l.Name, l.Algorithm, l.Limit, l.Window, l.Burst,
			l.Align, l.Precision, l.Per, l.Mode, l.OnOutage,
		}
	}
	for i, p := range in.Prices {
		d.Prices[i] = priceDocument{p.Meter, p.Model, p.UnitPrice, p.PackageSize, p.PackagePrice, nil, p.Included}
		for _, t := range p.Tiers {
			d.Prices[i].Tiers = append(d.Prices[i].Tiers, tierDocument(t))
		}
	}
	return json.Marshal(d)
}

// readDocument is the inverse of document: the same integers, strings and numbers.
func readDocument(raw []byte) (PlanInput, error) {
	var d planDocument
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // features: a float64 would round integers from 2⁵³ on
	if err := decoder.Decode(&d); err != nil {
		return PlanInput{}, fmt.Errorf("a stored plan cannot be read: %w", err)
	}
	in := PlanInput{
		Name: d.Name, Currency: d.Currency, Interval: d.Interval, IntervalCount: d.IntervalCount,
		BasePriceMinor: d.BasePriceMinor, Meters: d.Meters, Features: d.Features, ApplyTo: d.ApplyTo,
		Limits: make([]LimitInput, len(d.Limits)), Prices: make([]PriceInput, len(d.Prices)),
	}
	for key, value := range in.Features {
		if n, ok := value.(json.Number); ok {
			in.Features[key], _ = feature(n)
		}
	}
	for i, l := range d.Limits {
		in.Limits[i] = LimitInput{l.Meter, quota.Spec{
			Name: l.Name, Algorithm: l.Algorithm, Limit: l.Limit,
			Window: l.Window, Burst: l.Burst, Align: l.Align, Precision: l.Precision, Per: l.Per,
			Mode: l.Mode, OnOutage: l.OnOutage,
		}}
	}
	for i, p := range d.Prices {
		in.Prices[i] = PriceInput{p.Meter, p.Model, p.UnitPrice, p.PackageSize, p.PackagePrice, []Tier{}, p.Included}
		for _, t := range p.Tiers {
			in.Prices[i].Tiers = append(in.Prices[i].Tiers, Tier(t))
		}
	}
	return in, nil
}
