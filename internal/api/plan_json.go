package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"quotad/internal/plans"
	"quotad/internal/quota"
)

// planRequest is the body of PUT /v1/plans/{key}. Its rules are plans' own; here is only
// what JSON leaves open: what must be there, and what a default may stand for.
type planRequest struct {
	Name           string             `json:"name" minLength:"1" maxLength:"200"`
	Currency       string             `json:"currency" pattern:"^[A-Z]{3}$" doc:"ISO 4217."`
	Interval       string             `json:"interval" enum:"day,week,month,year" doc:"The billing period is interval_count of these."`
	IntervalCount  *int               `json:"interval_count,omitempty" minimum:"1" default:"1"`
	BasePriceMinor int64              `json:"base_price_minor,omitempty" minimum:"0" maximum:"999999999999999" default:"0" doc:"In minor units of the currency."`
	Meters         []string           `json:"meters,omitempty" doc:"Meters that are admitted and counted beside those that limits and prices name."`
	Features       map[string]feature `json:"features,omitempty" doc:"What the application may ask for: booleans, numbers and strings, without effect here."`
	Limits         []limitJSON        `json:"limits,omitempty"`
	Prices         []priceJSON        `json:"prices,omitempty"`
	ApplyTo        string             `json:"apply_to,omitempty" enum:"all,new" default:"all" doc:"Whom a new version counts for: all customers of the plan, or those who join later."`
}

// limitJSON is a limit as it is written and shown.
type limitJSON struct {
	Name      string `json:"name" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$"`
	Meter     string `json:"meter" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$"`
	Algorithm string `json:"algorithm" enum:"fixed_window,token_bucket"`
	Limit     *int64 `json:"limit" nullable:"false" minimum:"0" maximum:"999999999999999" doc:"Units in a window; 0 is closed."`
	Window    string `json:"window" doc:"A whole number and one of us ms s m h d."`
	Burst     *int64 `json:"burst,omitempty" minimum:"0" maximum:"999999999999999" doc:"A token bucket's capacity; limit when left out."`
	Align     string `json:"align,omitempty" enum:"clock" doc:"Of a fixed window."`
	Precision string `json:"precision,omitempty" doc:"Not supported yet."`
	Per       string `json:"per,omitempty" doc:"Not supported yet."`
	Mode      string `json:"mode,omitempty" enum:"hard" default:"hard"`
	OnOutage  string `json:"on_outage,omitempty" enum:"allow,deny" default:"allow" doc:"What happens to hits while the database is out of reach."`
}

// priceJSON is a price as it is written and shown.
type priceJSON struct {
	Meter        string     `json:"meter" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$"`
	Model        string     `json:"model" enum:"per_unit,package,graduated,volume"`
	UnitPrice    *string    `json:"unit_price,omitempty" doc:"A decimal number in major units."`
	PackageSize  *int64     `json:"package_size,omitempty" minimum:"1"`
	PackagePrice *string    `json:"package_price,omitempty" doc:"A decimal number in major units."`
	Tiers        []tierJSON `json:"tiers,omitempty"`
	Included     int64      `json:"included,omitempty" minimum:"0" maximum:"999999999999999" default:"0" doc:"Units that are free, and come off first."`
}

type tierJSON struct {
	UpTo      *int64  `json:"up_to" required:"false" minimum:"1" doc:"The last unit of the tier; null for the last tier."`
	UnitPrice string  `json:"unit_price" doc:"A decimal number in major units."`
	FlatPrice *string `json:"flat_price,omitempty" doc:"A decimal number in major units."`
}

// planBody is one version of a plan as it is shown, every default filled in.
type planBody struct {
	Key            string         `json:"key"`
	Version        int            `json:"version"`
	CreatedAt      time.Time      `json:"created_at"`
	Name           string         `json:"name"`
	Currency       string         `json:"currency"`
	Interval       string         `json:"interval"`
	IntervalCount  int            `json:"interval_count"`
	BasePriceMinor int64          `json:"base_price_minor"`
	Meters         []string       `json:"meters"`
	Features       map[string]any `json:"features"`
	Limits         []limitJSON    `json:"limits"`
	Prices         []priceJSON    `json:"prices"`
	ApplyTo        string         `json:"apply_to"`
}

// A feature is a boolean, a number or a string. Numbers stay as they were written, since
// a float64 would round them.
type feature struct{ value any }

// UnmarshalJSONFrom implements jsonv2's UnmarshalerFrom.
func (f *feature) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	switch d.PeekKind() {
	case '0':
		raw, err := d.ReadValue()
		f.value = json.Number(bytes.Clone(raw))
		return err
	case '"':
		token, err := d.ReadToken()
		f.value = token.String()
		return err
	case 't', 'f':
		token, err := d.ReadToken()
		f.value = token.Kind() == 't'
		return err
	}
	if err := d.SkipValue(); err != nil {
		return err
	}
	return mismatch("must be true, false, a number or a string")
}

// Schema implements huma.SchemaProvider.
func (feature) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Extensions: map[string]any{"type": []string{"boolean", "number", "string"}}}
}

// input is the plan as the store takes it, and what is missing for it.
func (in *planRequest) input() (p plans.PlanInput, bad quota.FieldErrors) {
	p = plans.PlanInput{
		Name: in.Name, Currency: in.Currency, Interval: in.Interval, BasePriceMinor: in.BasePriceMinor,
		Meters: in.Meters, Features: make(map[string]any, len(in.Features)), ApplyTo: in.ApplyTo,
		Limits: make([]plans.LimitInput, len(in.Limits)), Prices: make([]plans.PriceInput, len(in.Prices)),
	}
	if in.IntervalCount != nil {
		if p.IntervalCount = *in.IntervalCount; p.IntervalCount < 1 {
			bad = append(bad, quota.FieldError{Field: "interval_count", Detail: "must be at least 1"})
		}
	}
	for name, f := range in.Features {
		p.Features[name] = f.value
	}
	for i, l := range in.Limits {
		spec := quota.Spec{
			Name: l.Name, Algorithm: l.Algorithm, Window: l.Window, Burst: l.Burst,
			Align: l.Align, Precision: l.Precision, Per: l.Per, Mode: l.Mode, OnOutage: l.OnOutage,
		}
		if l.Limit != nil {
			spec.Limit = *l.Limit
		} else {
			// Without this a forgotten limit would be 0: closed.
			bad = append(bad, quota.FieldError{Field: fmt.Sprintf("limits[%d].limit", i), Detail: "is required"})
		}
		p.Limits[i] = plans.LimitInput{Meter: l.Meter, Spec: spec}
	}
	for i, price := range in.Prices {
		p.Prices[i] = plans.PriceInput{
			Meter: price.Meter, Model: price.Model, UnitPrice: price.UnitPrice,
			PackageSize: price.PackageSize, PackagePrice: price.PackagePrice, Included: price.Included,
		}
		for _, t := range price.Tiers {
			p.Prices[i].Tiers = append(p.Prices[i].Tiers, plans.Tier(t))
		}
	}
	return p, bad
}

func showPlan(p *plans.Plan) planBody {
	body := planBody{
		Key: p.Key, Version: p.Version, CreatedAt: p.CreatedAt.UTC(), Name: p.Name, Currency: p.Currency,
		Interval: p.Interval, IntervalCount: p.IntervalCount, BasePriceMinor: p.BasePriceMinor,
		Meters: p.Meters, Features: showFeatures(p.Features), ApplyTo: p.ApplyTo,
		Limits: make([]limitJSON, len(p.Limits)), Prices: make([]priceJSON, len(p.Prices)),
	}
	for i := range p.Limits {
		l := &p.Limits[i]
		body.Limits[i] = limitJSON{
			Name: l.Name, Meter: l.Meter, Algorithm: l.Algorithm, Limit: &l.Limit, Window: l.Window,
			Burst: l.Burst, Align: l.Align, Precision: l.Precision, Per: l.Per, Mode: l.Mode, OnOutage: l.OnOutage,
		}
	}
	for i, price := range p.Prices {
		body.Prices[i] = priceJSON{
			Meter: price.Meter, Model: price.Model, UnitPrice: price.UnitPrice,
			PackageSize: price.PackageSize, PackagePrice: price.PackagePrice, Included: price.Included,
		}
		for _, t := range price.Tiers {
			body.Prices[i].Tiers = append(body.Prices[i].Tiers, tierJSON(t))
		}
	}
	return body
}

// showFeatures writes numbers as they are kept: jsonv2 takes a json.Number for a string.
func showFeatures(features map[string]any) map[string]any {
	shown := make(map[string]any, len(features))
	for name, value := range features {
		if n, ok := value.(json.Number); ok {
			value = jsontext.Value(n)
		}
		shown[name] = value
	}
	return shown
}
