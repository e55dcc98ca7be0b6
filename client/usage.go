package client

import (
	"context"
	"net/url"
	"time"
)

// Usage is a customer's usage of a meter.
type Usage struct {
	Points         []UsagePoint `json:"points" doc:"The points, ascending. Points without usage are there as zeros. Those that start before archived_before are left out.\n- Of a flow meter they have admitted and denied.\n- Of a level meter they have last, peak and average."`
	ArchivedBefore *time.Time   `json:"archived_before,omitempty" doc:"The instant before which usage was taken out of the database. Present if the time that was asked for begins before it."`
	TestClock      string       `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
}

// UsagePoint is an hour, day or month of usage.
type UsagePoint struct {
	Start time.Time `json:"start" doc:"The UTC instant at which the hour, day or month of the customer's timezone begins."`
	*UsageUnits
	*UsageLevel
}

// UsageUnits contains the units of a flow meter at one point.
type UsageUnits struct {
	Admitted int64 `json:"admitted" required:"false" doc:"Units admitted, exact."`
	Denied   int64 `json:"denied" required:"false" doc:"Units of cost that were refused. This is a statistic: it lags by up to a second, and a crash may lose the last second."`
}

// UsageLevel contains the level of a level meter at one point.
type UsageLevel struct {
	Last    int64  `json:"last" required:"false" doc:"Units held at the end of the hour, day or month."`
	Peak    int64  `json:"peak" required:"false" doc:"The most units held at any instant of the hour, day or month."`
	Average string `json:"average" required:"false" doc:"The average of the units held, a decimal number with 6 digits after the point."`
}

// MeterUsage is a meter's usage in the running billing period.
type MeterUsage struct {
	Meter        string    `json:"meter" doc:"The meter's key."`
	Unit         string    `json:"unit" doc:"The name of one unit, such as request."`
	PeriodStart  time.Time `json:"period_start" doc:"The start of the billing period, RFC 3339 in UTC."`
	PeriodEnd    time.Time `json:"period_end" doc:"The exclusive end of the billing period, RFC 3339 in UTC."`
	Kind         string    `json:"kind" enum:"flow,level" doc:"What the meter counts. A flow meter counts what passes, such as requests. A level meter counts what is held, such as seats."`
	Used         int64     `json:"used" doc:"What is held of a level meter. Of a flow meter: units admitted in the period, less units refunded.\n- A refund of hits of a period that is over is taken off the running period.\n- So used may fall below 0."`
	Included     int64     `json:"included" doc:"Units that the price gives free."`
	Overage      int64     `json:"overage" doc:"Units used beyond the included ones."`
	PriceVersion *int      `json:"price_version" doc:"The number of the plan version that prices the period. Null if nobody is billed."`
	AmountMinor  *int64    `json:"amount_minor" doc:"What the usage costs so far, in minor units. What is held now is taken as held to the period's end. Null without a price."`
	CapMinor     *int64    `json:"cap_minor,omitempty" doc:"The most that the meter may cost in the period, in minor units. Left out without a cap."`
	Currency     string    `json:"currency" doc:"The ISO 4217 code of the currency, such as EUR."`
}

// Quota is a customer's state: its limits, and its usage in the running billing period.
type Quota struct {
	Customer    string           `json:"customer" doc:"The customer's key."`
	Plan        string           `json:"plan" doc:"The key of the customer's plan."`
	PlanVersion int              `json:"plan_version" doc:"The number of the plan version whose limits count now."`
	At          time.Time        `json:"at" doc:"The instant of the answer by the customer's clock, RFC 3339 in UTC."`
	TestClock   string           `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
	Anonymous   bool             `json:"anonymous,omitzero" doc:"True if the customer was created by its first hit, on the default plan. Absent otherwise."`
	Suspension  *Suspension      `json:"suspension,omitempty" doc:"The customer's suspension, during which hits and reservations are refused with 403 suspended. Absent if the customer is not suspended."`
	Scheduled   *ScheduledChange `json:"scheduled_change,omitempty" doc:"The change of plan that waits. Absent if no change waits."`
	EndsAt      *time.Time       `json:"ends_at,omitempty" doc:"The instant from which hits and reservations are refused with 403 ended, RFC 3339 in UTC. Absent if they never are."`
	Ended       bool             `json:"ended,omitzero" doc:"True from ends_at on. Absent before."`
	Features    map[string]any   `json:"features" doc:"The features of the plan, with the customer's own over them. Values are booleans, numbers and strings."`
	Limits      []QuotaLimit     `json:"limits" doc:"The limits of all meters of the plan, the customer's caps among them."`
	Meters      []MeterUsage     `json:"meters" doc:"The meters of the plan, with the usage of the running billing period."`
}

// QuotaLimit is the state of one limit with its meter.
type QuotaLimit struct {
	Name         string     `json:"name" doc:"The limit's name."`
	Algorithm    string     `json:"algorithm" doc:"The limit's algorithm, as in the plan: fixed_window, sliding_window, sliding_log, token_bucket, allocation or concurrency."`
	Mode         string     `json:"mode" doc:"The limit's mode, as in the plan: hard, soft or shadow."`
	Limit        int64      `json:"limit" doc:"Units in a window. Of an allocation, units in all. Of a concurrency, units in flight."`
	Used         int64      `json:"used" doc:"Units that count against the limit now. Of a token bucket, the burst less remaining."`
	Remaining    int64      `json:"remaining" doc:"The largest cost that the limit would admit now."`
	Exceeded     bool       `json:"exceeded" doc:"True while more units count against the limit than the limit has."`
	RetryAfterMS *int64     `json:"retry_after_ms" doc:"Always 0, because reading the quota costs no units."`
	ResetAt      *time.Time `json:"reset_at" doc:"The instant at which the whole quota of the limit would be there again, RFC 3339 in UTC. Null means never."`
	Window       *string    `json:"window" doc:"The window, as in the plan. Null for an allocation and for a concurrency."`
	WindowStart  *time.Time `json:"window_start" doc:"When the running window began.\n- Null: windows of the limit have no start, as of a token bucket.\n- Null, too, where a window begins with a first hit, and none runs."`
	Meter        string     `json:"meter" doc:"The key of the meter whose hits the limit judges."`
	Reserved     int64      `json:"reserved" doc:"Units of used that open reservations hold."`
}

// Quota reads a customer's state. Values of attributes are parameters such as attr.ip.
func (c *Client) Quota(ctx context.Context, customer string, attributes url.Values) (Quota, error) {
	return get[Quota](ctx, c, with(at("customers", customer, "quota"), attributes))
}

// Usage reads a customer's usage.
func (c *Client) Usage(ctx context.Context, customer string, query url.Values) (Usage, error) {
	return get[Usage](ctx, c, with(at("customers", customer, "usage"), query))
}
