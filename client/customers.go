package client

import (
	"context"
	"net/url"
	"time"
)

// Customer is who is limited and billed.
type Customer struct {
	Key              string            `json:"key"`
	Name             string            `json:"name"`
	Plan             string            `json:"plan"`
	PlanVersion      *int              `json:"plan_version" doc:"The pinned version, or null."`
	EffectiveVersion int               `json:"effective_version" doc:"The version whose limits count now."`
	Timezone         string            `json:"timezone"`
	BillingAnchor    string            `json:"billing_anchor"`
	Metadata         map[string]string `json:"metadata"`
	TestClock        *string           `json:"test_clock" doc:"Key of the test clock that the customer lives by, or null."`
	Anonymous        bool              `json:"anonymous" doc:"The customer was created by its first hit, on the default plan. An idle one is forgotten, unless it is written before."`
	Features         map[string]any    `json:"features" doc:"The customer's own features. The customer's quota shows them over those of the plan."`
	CreatedAt        time.Time         `json:"created_at"`
	ArchivedAt       *time.Time        `json:"archived_at"`
	ErasedAt         *time.Time        `json:"erased_at" doc:"When what identifies a person was removed."`
}

// CustomerRequest is the body of PUT /v1/customers/{key}.
type CustomerRequest struct {
	Name          string            `json:"name" maxLength:"200"`
	Plan          string            `json:"plan" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The plan's key."`
	PlanVersion   *int              `json:"plan_version,omitempty" minimum:"1" doc:"Pins the customer to this version. When left out, the customer follows the plan."`
	Timezone      string            `json:"timezone" required:"false" default:"UTC" doc:"IANA name, such as Europe/Berlin.\n- Another timezone counts at once for calendar windows and usage.\n- Another timezone counts for billing periods from the next one on."`
	BillingAnchor string            `json:"billing_anchor,omitempty" pattern:"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$" doc:"Billing periods are counted from here. This is wall clock in the customer's timezone.\n- When left out, a new customer has the instant of creation.\n- When left out, an existing customer keeps its anchor.\n- Another anchor or another timezone counts from the next period on."`
	Metadata      map[string]string `json:"metadata,omitempty"`
	Features      map[string]any    `json:"features,omitempty" doc:"Features that differ from those of the plan, or are beside them. Values are booleans, numbers and strings."`
	TestClock     *string           `json:"test_clock,omitempty" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"Key of the test clock that the customer is created with.\n- The customer lives by the clock ever after.\n- When left out, a new customer lives in real time.\n- When left out, an existing customer stays on its clock."`
	Change        *string           `json:"change,omitempty" enum:"now" doc:"When changes of an existing customer count.\n- Another plan's limits count at once.\n- Another plan's interval and prices, another anchor and another timezone count from the next billing period on.\n- With now, this request ends the running period, if one of these changes."`
}

// OverrideRequest is the body of PUT /v1/customers/{key}/overrides/{limit}.
type OverrideRequest struct {
	Limit     int64      `json:"limit" minimum:"0" maximum:"999999999999999" doc:"The limit instead of the plan's. 0 is closed."`
	Burst     *int64     `json:"burst,omitempty" minimum:"0" maximum:"999999999999999" doc:"The capacity of a token bucket. When left out, limit, whatever the plan's burst is."`
	ExpiresAt *time.Time `json:"expires_at,omitzero" nullable:"true" doc:"When the plan's own numbers count again, by the customer's clock. Null or left out: never."`
	Reason    string     `json:"reason,omitempty" maxLength:"200" doc:"Why, for people who read the list and the audit."`
}

// Override is a limit of one customer, instead of the plan's.
type Override struct {
	Name      string     `json:"name" doc:"The limit's name."`
	Limit     int64      `json:"limit"`
	Burst     *int64     `json:"burst,omitempty" minimum:"0" doc:"Left out when the burst is the limit."`
	ExpiresAt *time.Time `json:"expires_at"`
	Reason    string     `json:"reason,omitempty"`
	InForce   bool       `json:"in_force" doc:"False when the override has no effect:\n- The override has expired.\n- The plan version in force does not have the limit.\n- The limit has a shape that these numbers do not fit."`
	TestClock string     `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
}

// Spell is a time in which a limit refused a customer's hits.
type Spell struct {
	Limit      string     `json:"limit" doc:"The limit's name."`
	Meter      string     `json:"meter"`
	From       time.Time  `json:"from" doc:"The first hit that was refused."`
	To         time.Time  `json:"to" doc:"The last hit that was refused."`
	Units      int64      `json:"units" doc:"The sum of their costs, also of hits that were sent again."`
	AdmittedAt *time.Time `json:"admitted_at" doc:"When the last hit would have been admitted, if nothing else had happened. Null: never."`
}

// OpenReservation is an open reservation as a list shows it.
type OpenReservation struct {
	ID         string            `json:"id" doc:"Commit or release the reservation by it."`
	Meter      string            `json:"meter"`
	Cost       int64             `json:"cost" doc:"Units that it holds."`
	Attributes map[string]string `json:"attributes" doc:"Of its attributes, those that limits were per. Others are not kept."`
	CreatedAt  time.Time         `json:"created_at" doc:"When it was charged, by the customer's clock."`
	ExpiresAt  time.Time         `json:"expires_at" doc:"When the held units count no more, by the customer's clock."`
	TestClock  string            `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
}

// Customer reads a customer, with its entity tag.
func (c *Client) Customer(ctx context.Context, key string) (Customer, string, error) {
	return tagged[Customer](ctx, c, at("customers", key))
}

// Customers lists the customers.
func (c *Client) Customers(ctx context.Context, query url.Values) (List[Customer], error) {
	return get[List[Customer]](ctx, c, with(at("customers"), query))
}

// ArchiveCustomer archives a customer.
func (c *Client) ArchiveCustomer(ctx context.Context, key string) error {
	return c.remove(ctx, at("customers", key))
}

// Overrides lists a customer's overrides.
func (c *Client) Overrides(ctx context.Context, customer string, query url.Values) (List[Override], error) {
	return get[List[Override]](ctx, c, with(at("customers", customer, "overrides"), query))
}

// DeleteOverride ends an override.
func (c *Client) DeleteOverride(ctx context.Context, customer, limit string) error {
	return c.remove(ctx, at("customers", customer, "overrides", limit))
}

// Refusals lists when limits refused a customer's hits, the newest first.
func (c *Client) Refusals(ctx context.Context, customer string, query url.Values) (List[Spell], error) {
	return get[List[Spell]](ctx, c, with(at("customers", customer, "refusals"), query))
}

// Reservations lists a customer's open reservations.
func (c *Client) Reservations(ctx context.Context, customer string, query url.Values) (List[OpenReservation], error) {
	return get[List[OpenReservation]](ctx, c, with(at("customers", customer, "reservations"), query))
}
