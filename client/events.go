package client

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// Event is something that happened.
type Event struct {
	ID        int64           `json:"id" doc:"Rises from event to event. None appears later with a lower id than one that was shown."`
	Type      string          `json:"type" doc:"The type of the event, such as invoice.paid. The guide's page on events lists all types."`
	At        time.Time       `json:"at" doc:"When it happened, by the customer's clock."`
	Customer  *string         `json:"customer" doc:"The customer's key as it is now. Null where it is of no customer, or of one that was forgotten."`
	TestClock *string         `json:"test_clock" doc:"The test clock that the customer lives by. Null: real time."`
	Data      json.RawMessage `json:"data" doc:"What it is about. Members as GET shows them."`
}

// EventData is what an event says. Each type has some of these.
type EventData struct {
	ID     string `json:"id,omitempty" doc:"Of the invoice, the credit or the webhook. Of payment.noted and payment.reversed, of the invoice. That of an erased customer's credit is left out."`
	Number string `json:"number,omitempty" doc:"Of an invoice that is finalized."`
	Kind   string `json:"kind,omitempty" doc:"Of the invoice, the credit or the payment."`
	Status string `json:"status,omitempty" doc:"Of the invoice, from then on."`

	Reason string `json:"reason,omitempty" enum:"gone,failing" doc:"Of webhook.disabled: it answered 410, or nothing could be delivered for 5 days."`

	Currency       string `json:"currency,omitempty" doc:"The ISO 4217 code of the currency of the amounts. Absent if the event has no amounts."`
	TotalMinor     *int64 `json:"total_minor,omitempty" doc:"Of the invoice."`
	AmountDueMinor *int64 `json:"amount_due_minor,omitempty" doc:"Of the invoice."`
	CreditedMinor  *int64 `json:"credited_minor,omitempty" doc:"Of an invoice that is finalized."`

	OpenMinor *int64 `json:"open_minor,omitempty" doc:"Of invoice.overdue, payment.noted and payment.reversed: what is open of the invoice from then on."`

	CreditNote *EventNote `json:"credit_note,omitempty" doc:"Of invoice.credited: the note that was made."`

	AmountMinor  *int64 `json:"amount_minor,omitempty" doc:"Of the credit, as it was granted. Of payment.noted and payment.reversed, what the payment paid. Of cap.threshold, what the cap may cost."`
	LeftMinor    *int64 `json:"left_minor,omitempty" doc:"Of the credit, from then on."`
	ExpiredMinor *int64 `json:"expired_minor,omitempty" doc:"Of credit.expired: what was left until then."`

	WithdrawnMinor *int64 `json:"withdrawn_minor,omitempty" doc:"Of credit.withdrawn: what was taken back."`

	Plan        string     `json:"plan,omitempty" doc:"The plan's key. Of customer.plan_requested, that of the plan that the customer asks for."`
	PlanVersion int        `json:"plan_version,omitempty" doc:"The number of the plan version. Absent if the event is about no version."`
	Previous    *EventPlan `json:"previous,omitempty" doc:"Of customer.plan_changed: the plan until then."`
	Name        string     `json:"name,omitempty" doc:"Of limit.threshold: the limit's."`
	Meter       string     `json:"meter,omitempty" doc:"Of limit.threshold and cap.threshold: the meter's key."`
	Percent     int        `json:"percent,omitempty" doc:"Of limit.threshold and cap.threshold: the threshold that was reached."`
	Used        *int64     `json:"used,omitempty" doc:"What counts against the limit then, in units. Less than the percent where a hit was refused."`
	Limit       *int64     `json:"limit,omitempty" doc:"Of limit.threshold: the limit's units."`
	Burst       *int64     `json:"burst,omitempty" doc:"Of limit.threshold of a token bucket: what the percent is of."`
	Units       *int64     `json:"units,omitempty" doc:"Of cap.threshold: the units of the cap. Its amount is in amount_minor."`
	WindowStart *time.Time `json:"window_start,omitempty" doc:"Of limit.threshold: when the running window began."`
	ResetAt     *time.Time `json:"reset_at,omitempty" doc:"Of limit.threshold: when the whole quota would be there again. Left out where it never would be."`
	PeriodStart *time.Time `json:"period_start,omitempty" doc:"Of cap.threshold."`
	PeriodEnd   *time.Time `json:"period_end,omitempty" doc:"Of cap.threshold."`
	PlanAt      *time.Time `json:"at,omitempty" doc:"Of customer.change_dropped: when the plan would have counted."`
}

// EventNote is a credit note that an event tells of.
type EventNote struct {
	ID         string `json:"id" doc:"The id of the credit note."`
	Number     string `json:"number" doc:"The number of the credit note."`
	TotalMinor int64  `json:"total_minor" doc:"The total of the credit note with taxes, in minor units. It is below 0."`
}

// EventPlan is a version of a plan that an event tells of.
type EventPlan struct {
	Plan        string `json:"plan" doc:"The plan's key."`
	PlanVersion int    `json:"plan_version" doc:"The number of the plan version."`
}

// Events lists what happened, in the order of the ids.
func (c *Client) Events(ctx context.Context, query url.Values) (List[Event], error) {
	return get[List[Event]](ctx, c, with(at("events"), query))
}
