package client

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// Event is an entry of the feed.
type Event struct {
	ID        int64           `json:"id" doc:"The event's id. Ids rise, and no event appears later with a lower id than an event that was shown."`
	Type      string          `json:"type" doc:"The type of the event, such as invoice.paid. The guide's page on events lists all types."`
	At        time.Time       `json:"at" doc:"The instant of the event by the customer's clock, RFC 3339 in UTC."`
	Customer  *string         `json:"customer" doc:"The customer's present key. Null if the event is about no customer, or about a customer who was forgotten."`
	TestClock *string         `json:"test_clock" doc:"The key of the test clock that the customer lives by. Null in real time."`
	Data      json.RawMessage `json:"data" doc:"The subject of the event. Its members are as GET shows them, and each type of event has some of them."`
}

// EventData contains the details of an event. Each type of event has some of these members.
type EventData struct {
	ID     string `json:"id,omitempty" doc:"The id of the invoice, the credit or the webhook. Of a payment's event, the id of the invoice. Absent for a credit of an erased customer."`
	Number string `json:"number,omitempty" doc:"The number of the invoice, if it is finalized."`
	Kind   string `json:"kind,omitempty" doc:"The kind of the invoice, the credit or the payment."`
	Status string `json:"status,omitempty" doc:"The status of the invoice after the event."`

	Reason string `json:"reason,omitempty" enum:"gone,failing" doc:"Of webhook.disabled: it answered 410, or nothing could be delivered for 5 days."`

	Currency       string `json:"currency,omitempty" doc:"The ISO 4217 code of the currency of the amounts. Absent if the event has no amounts."`
	TotalMinor     *int64 `json:"total_minor,omitempty" doc:"The total of the invoice with taxes, in minor units."`
	AmountDueMinor *int64 `json:"amount_due_minor,omitempty" doc:"The total of the invoice less credits, in minor units."`
	CreditedMinor  *int64 `json:"credited_minor,omitempty" doc:"The amount that credit notes have credited of the finalized invoice, in minor units."`

	OpenMinor *int64 `json:"open_minor,omitempty" doc:"Of invoice.overdue, payment.noted and payment.reversed: the amount that is open of the invoice after the event, in minor units."`

	CreditNote *EventNote `json:"credit_note,omitempty" doc:"Of invoice.credited: the credit note that was made."`

	AmountMinor  *int64 `json:"amount_minor,omitempty" doc:"The amount of the credit as it was granted, in minor units. Of payment.noted and payment.reversed, that of the payment. Of cap.threshold, that of the cap."`
	LeftMinor    *int64 `json:"left_minor,omitempty" doc:"The part of the credit that is left after the event, in minor units."`
	ExpiredMinor *int64 `json:"expired_minor,omitempty" doc:"Of credit.expired: the part that was left until then, in minor units."`

	WithdrawnMinor *int64 `json:"withdrawn_minor,omitempty" doc:"Of credit.withdrawn: the amount that was taken back, in minor units."`

	Plan        string     `json:"plan,omitempty" doc:"The plan's key. Of customer.plan_requested, that of the plan that the customer asks for."`
	PlanVersion int        `json:"plan_version,omitempty" doc:"The number of the plan version. Absent if the event is about no version."`
	Previous    *EventPlan `json:"previous,omitempty" doc:"Of customer.plan_changed: the plan until then."`
	Name        string     `json:"name,omitempty" doc:"Of limit.threshold: the limit's name."`
	Meter       string     `json:"meter,omitempty" doc:"Of limit.threshold and cap.threshold: the meter's key."`
	Percent     int        `json:"percent,omitempty" doc:"Of limit.threshold and cap.threshold: the threshold that was reached, in percent."`
	Used        *int64     `json:"used,omitempty" doc:"Units that count against the limit at the event. Less than the percent if a hit was refused."`
	Limit       *int64     `json:"limit,omitempty" doc:"Of limit.threshold: the limit's units."`
	Burst       *int64     `json:"burst,omitempty" doc:"Of limit.threshold of a token bucket: the capacity in units, of which percent is a part."`
	Units       *int64     `json:"units,omitempty" doc:"Of cap.threshold: the units of the cap."`
	WindowStart *time.Time `json:"window_start,omitempty" doc:"Of limit.threshold: the start of the running window, RFC 3339 in UTC."`
	ResetAt     *time.Time `json:"reset_at,omitempty" doc:"Of limit.threshold: the instant at which the whole quota would be there again, RFC 3339 in UTC. Absent if it never would be."`
	PeriodStart *time.Time `json:"period_start,omitempty" doc:"Of cap.threshold: the start of the billing period, RFC 3339 in UTC."`
	PeriodEnd   *time.Time `json:"period_end,omitempty" doc:"Of cap.threshold: the exclusive end of the billing period, RFC 3339 in UTC."`
	PlanAt      *time.Time `json:"at,omitempty" doc:"Of customer.change_dropped: the instant from which the plan would have counted, RFC 3339 in UTC."`
}

// EventNote is the credit note of an event.
type EventNote struct {
	ID         string `json:"id" doc:"The id of the credit note."`
	Number     string `json:"number" doc:"The number of the credit note."`
	TotalMinor int64  `json:"total_minor" doc:"The total of the credit note with taxes, in minor units. It is below 0."`
}

// EventPlan is the plan version of an event.
type EventPlan struct {
	Plan        string `json:"plan" doc:"The plan's key."`
	PlanVersion int    `json:"plan_version" doc:"The number of the plan version."`
}

// Events lists events in the order of their ids.
func (c *Client) Events(ctx context.Context, query url.Values) (List[Event], error) {
	return get[List[Event]](ctx, c, with(at("events"), query))
}
