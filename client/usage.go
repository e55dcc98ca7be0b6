package client

import (
	"context"
	"net/url"
	"time"
)

// Usage is a customer's usage of a meter.
type Usage struct {
	Points    []UsagePoint `json:"points" doc:"The points, ascending. Points without usage are there as zeros."`
	TestClock string       `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
}

// UsagePoint is an hour, day or month of usage.
type UsagePoint struct {
	Start    time.Time `json:"start" doc:"Start of the hour, day or month in the customer's timezone."`
	Admitted int64     `json:"admitted" doc:"Units admitted, exact."`
	Denied   int64     `json:"denied" doc:"Units of cost that were refused. This is a statistic: it lags by up to a second, and a crash may lose the last second."`
}

// MeterUsage is a meter's usage in the running billing period.
type MeterUsage struct {
	Meter        string    `json:"meter"`
	Unit         string    `json:"unit"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Used         int64     `json:"used" doc:"Units admitted in the period, less units refunded.\n- A refund of hits of a period that is over is taken off the running period.\n- So used may fall below 0."`
	Included     int64     `json:"included" doc:"Units that the price gives free."`
	Overage      int64     `json:"overage" doc:"Units used beyond the included ones."`
	PriceVersion *int      `json:"price_version" doc:"The plan version that prices the period, or null where nobody is billed."`
	AmountMinor  *int64    `json:"amount_minor" doc:"What the usage costs so far, in minor units. Null without a price."`
	Currency     string    `json:"currency"`
}

// Quota is how a customer stands: its limits, and its usage in the running billing period.
type Quota struct {
	Customer    string         `json:"customer"`
	Plan        string         `json:"plan"`
	PlanVersion int            `json:"plan_version"`
	At          time.Time      `json:"at"`
	TestClock   string         `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
	Anonymous   bool           `json:"anonymous,omitzero" doc:"The customer was created by its first hit, on the default plan."`
	Features    map[string]any `json:"features"`
	Limits      []QuotaLimit   `json:"limits"`
	Meters      []MeterUsage   `json:"meters"`
}

// QuotaLimit is the state of one limit, and its meter.
type QuotaLimit struct {
	Name         string     `json:"name"`
	Algorithm    string     `json:"algorithm"`
	Mode         string     `json:"mode"`
	Limit        int64      `json:"limit"`
	Used         int64      `json:"used"`
	Remaining    int64      `json:"remaining"`
	Exceeded     bool       `json:"exceeded"`
	RetryAfterMS *int64     `json:"retry_after_ms"`
	ResetAt      *time.Time `json:"reset_at"`
	Window       *string    `json:"window"`
	WindowStart  *time.Time `json:"window_start" doc:"When the running window began.\n- Null: windows of the limit have no start, as of a token bucket.\n- Null, too, where a window begins with a first hit, and none runs."`
	Meter        string     `json:"meter"`
	Reserved     int64      `json:"reserved" doc:"Units of used that open reservations hold."`
}

// Quota reads how a customer stands. The values of attributes are parameters such as attr.ip.
func (c *Client) Quota(ctx context.Context, customer string, attributes url.Values) (Quota, error) {
	return get[Quota](ctx, c, with(at("customers", customer, "quota"), attributes))
}

// Usage reads what a customer used.
func (c *Client) Usage(ctx context.Context, customer string, query url.Values) (Usage, error) {
	return get[Usage](ctx, c, with(at("customers", customer, "usage"), query))
}
