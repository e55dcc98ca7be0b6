package client

import (
	"context"
	"net/url"
	"time"
)

// Customer is a party that is limited and billed.
type Customer struct {
	Key              string            `json:"key" doc:"The customer's key."`
	Name             string            `json:"name" doc:"The customer's name, for people. It may be empty."`
	Plan             string            `json:"plan" doc:"The key of the customer's plan."`
	PlanVersion      *int              `json:"plan_version" doc:"The number of the version that the customer is pinned to. Null if the customer follows the plan."`
	EffectiveVersion int               `json:"effective_version" doc:"The number of the plan version whose limits count now."`
	Timezone         string            `json:"timezone" doc:"The customer's timezone, an IANA name such as Europe/Berlin. It sets calendar windows, usage by day and billing periods."`
	BillingAnchor    string            `json:"billing_anchor" doc:"The wall-clock time from which billing periods are counted, in the customer's timezone and without an offset, such as 2026-01-31T00:00:00."`
	Metadata         map[string]string `json:"metadata" doc:"Texts of your own by name. quotad stores them and does nothing else with them."`
	TestClock        *string           `json:"test_clock" doc:"The key of the test clock that the customer lives by. Null in real time."`
	Anonymous        bool              `json:"anonymous" doc:"True if the customer was created by its first hit, on the default plan. An idle one is forgotten, unless it is written before."`
	Features         map[string]any    `json:"features" doc:"The customer's own features. The customer's quota shows them over those of the plan."`
	CreatedAt        time.Time         `json:"created_at" doc:"The instant of the customer's creation, RFC 3339 in UTC."`
	Suspension       *Suspension       `json:"suspension,omitempty" doc:"The customer's suspension, during which hits and reservations are refused with 403 suspended. Absent if the customer is not suspended."`
	ScheduledChange  *ScheduledChange  `json:"scheduled_change,omitempty" doc:"The change of plan that waits. Absent if no change waits."`
	ArchivedAt       *time.Time        `json:"archived_at" doc:"The instant at which the customer was archived, RFC 3339 in UTC. Null if the customer is not archived."`
	ErasedAt         *time.Time        `json:"erased_at" doc:"The instant at which what identifies a person was removed, RFC 3339 in UTC. Null if the customer was not erased."`
}

// SuspensionRequest is the body of PUT /v1/customers/{key}/suspension.
type SuspensionRequest struct {
	Reason string `json:"reason" minLength:"1" maxLength:"200" doc:"The reason for the suspension, for people. The customer sees it in the portal."`
}

// Suspension is a period in which a customer's hits and reservations are refused.
type Suspension struct {
	Reason string    `json:"reason" doc:"The reason for the suspension, for people. The customer sees it in the portal."`
	At     time.Time `json:"at" doc:"The start of the suspension by PostgreSQL's clock, RFC 3339 in UTC."`
}

// PlanRequestRequest is the body of POST /v1/customers/{key}/plan-requests.
type PlanRequestRequest struct {
	Plan string `json:"plan" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The key of the plan that the customer asks for. It is not the customer's present one."`
}

// PlanRequest is a plan that a customer asked for.
type PlanRequest struct {
	Plan string    `json:"plan" doc:"The key of the plan that the customer asked for."`
	At   time.Time `json:"at" doc:"When the event customer.plan_requested told of it last, by the customer's clock. The same request is told once in 24 hours."`
}

// ScheduledChangeRequest is the body of PUT /v1/customers/{key}/scheduled-change.
type ScheduledChangeRequest struct {
	Plan        string `json:"plan" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The plan's key."`
	PlanVersion *int   `json:"plan_version,omitempty" minimum:"1" doc:"Pins the customer to this version. When left out, the customer has the newest version, and later ones that are written for all."`
	When        string `json:"when,omitempty" enum:"period_end,base_end" doc:"What the change waits for: the end of the running billing period, or that of all the periods that its base price is for. When left out, the latter where the base price is for more periods than one."`
}

// ScheduledChange is a customer's future plan.
type ScheduledChange struct {
	Plan        string    `json:"plan" doc:"The key of the plan that the customer will be on."`
	PlanVersion int       `json:"plan_version" doc:"The number of the plan version that would be in force now."`
	At          time.Time `json:"at" doc:"The instant from which limits and prices of the plan count by the customer's clock, RFC 3339 in UTC."`
}

// PreviewRequest is the body of POST /v1/customers/{key}/preview: a plan, or an end of billing.
type PreviewRequest struct {
	Plan        string  `json:"plan,omitempty" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The plan's key."`
	PlanVersion *int    `json:"plan_version,omitempty" minimum:"1" doc:"The version that the customer would be pinned to. It needs plan."`
	Change      string  `json:"change,omitempty" enum:"now,limits_now,period_end,base_end" doc:"When the plan would count. It needs plan.\n- now and limits_now: as in PUT /v1/customers/{key}. Left out it is limits_now there, or must be said.\n- period_end and base_end: a scheduled change."`
	EndsAt      *string `json:"ends_at,omitempty" doc:"When billing would end: an instant, period_end, or base_end, as in PUT /v1/customers/{key}/billing. It stands alone."`
}

// Preview is the result that a change would have.
type Preview struct {
	At       time.Time    `json:"at" doc:"The instant from which the change counts by the customer's clock, RFC 3339 in UTC."`
	Invoice  *Invoice     `json:"invoice" doc:"The draft of the billing period that ends at that instant, with the usage so far. Null: no period ends there, or its invoice is empty."`
	Upcoming *Invoice     `json:"upcoming" doc:"The upcoming invoice after that, with the usage so far. Null: billing is over."`
	Limits   []QuotaLimit `json:"limits" doc:"The limits that the customer would have, with what is used of them now."`
}

// CustomerRequest is the body of PUT /v1/customers/{key}.
type CustomerRequest struct {
	Name          string            `json:"name" maxLength:"200" doc:"The customer's name, for people. It may be empty."`
	Plan          string            `json:"plan" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The plan's key."`
	PlanVersion   *int              `json:"plan_version,omitempty" minimum:"1" doc:"Pins the customer to this version. When left out, the customer follows the plan."`
	Timezone      string            `json:"timezone" required:"false" default:"UTC" doc:"IANA name, such as Europe/Berlin.\n- Another timezone counts at once for calendar windows and usage.\n- Another timezone counts for billing periods from the next one on."`
	BillingAnchor *string           `json:"billing_anchor,omitempty" pattern:"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$" doc:"Billing periods are counted from here. This is wall clock in the customer's timezone.\n- When left out, a new customer has the instant of creation.\n- When left out, an existing customer keeps its anchor.\n- Another anchor or another timezone counts from the next period on."`
	Metadata      map[string]string `json:"metadata,omitempty" doc:"Texts of your own by name, which quotad only stores. At most 50, with names of 1 to 100 bytes and values of at most 500 bytes."`
	Features      map[string]any    `json:"features,omitempty" doc:"Features that differ from those of the plan, or are beside them. Values are booleans, numbers and strings."`
	TestClock     *string           `json:"test_clock,omitempty" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"Key of the test clock that the customer is created with.\n- The customer lives by the clock ever after.\n- When left out, a new customer lives in real time.\n- When left out, an existing customer stays on its clock."`
	Change        string            `json:"change,omitempty" enum:"now,limits_now" doc:"When changes of an existing customer count.\n- now: this request ends the running billing period, and all counts at once.\n- limits_now: another plan's limits count at once. Its interval and prices, another anchor and another timezone count from the next billing period on.\n- Left out it is limits_now. Where the plan or the pin changes, and one of the plans costs anything, it must be said."`
}

// OverrideRequest is the body of PUT /v1/customers/{key}/overrides/{limit}.
type OverrideRequest struct {
	Limit     int64      `json:"limit" minimum:"0" maximum:"999999999999999" doc:"The limit's units, in place of the plan's. 0 admits nothing."`
	Burst     *int64     `json:"burst,omitempty" minimum:"0" maximum:"999999999999999" doc:"The capacity of a token bucket. When left out, limit, whatever the plan's burst is."`
	ExpiresAt *time.Time `json:"expires_at,omitzero" nullable:"true" doc:"When the plan's own numbers count again, by the customer's clock. Null or left out: never."`
	Reason    string     `json:"reason,omitempty" maxLength:"200" doc:"The reason for the override, for people who read the list and the audit."`
}

// Override is a limit of a single customer that replaces the plan's limit.
type Override struct {
	Name      string     `json:"name" doc:"The limit's name."`
	Limit     int64      `json:"limit" doc:"The limit's units for this customer, in place of the plan's."`
	Burst     *int64     `json:"burst,omitempty" minimum:"0" doc:"The capacity of a token bucket, in units. Absent if the capacity is the limit."`
	ExpiresAt *time.Time `json:"expires_at" doc:"The instant from which the plan's own numbers count again, RFC 3339 in UTC. Null if the override does not expire."`
	Reason    string     `json:"reason,omitempty" doc:"The reason for the override, for people. Absent if none was given."`
	InForce   bool       `json:"in_force" doc:"False when the override has no effect:\n- The override has expired.\n- The plan version in force does not have the limit.\n- The limit has a shape that these numbers do not fit."`
	TestClock string     `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
}

// RefusalPeriod is a period in which a limit refused a customer's hits.
type RefusalPeriod struct {
	Limit      string     `json:"limit" doc:"The limit's name."`
	Meter      string     `json:"meter" doc:"The meter's key."`
	From       time.Time  `json:"from" doc:"The instant of the first hit that was refused, RFC 3339 in UTC."`
	To         time.Time  `json:"to" doc:"The instant of the last hit that was refused, RFC 3339 in UTC."`
	Units      int64      `json:"units" doc:"The sum of the costs of the refused hits, in units. A hit that was sent again counts again."`
	AdmittedAt *time.Time `json:"admitted_at" doc:"The instant at which the last hit would have been admitted, if nothing else had happened. Null means never."`
}

// OpenReservation is an open reservation in a list.
type OpenReservation struct {
	ID         string            `json:"id" doc:"The reservation's id. Commit or release the reservation by it."`
	Meter      string            `json:"meter" doc:"The meter's key."`
	Cost       int64             `json:"cost" doc:"Units that the reservation holds."`
	Attributes map[string]string `json:"attributes" doc:"Of its attributes, those that limits were per. Others are not kept."`
	CreatedAt  time.Time         `json:"created_at" doc:"The instant at which the units were reserved by the customer's clock, RFC 3339 in UTC."`
	ExpiresAt  time.Time         `json:"expires_at" doc:"The instant from which the held units count no more by the customer's clock, RFC 3339 in UTC."`
	TestClock  string            `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
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

// Suspend suspends a customer, whose hits and reservations are then refused.
func (c *Client) Suspend(ctx context.Context, customer string, in SuspensionRequest) (Suspension, error) {
	return put[Suspension](ctx, c, at("customers", customer, "suspension"), in)
}

// Resume ends a customer's suspension.
func (c *Client) Resume(ctx context.Context, customer string) error {
	return c.remove(ctx, at("customers", customer, "suspension"))
}

// RequestPlan raises an event that reports a customer's request for another plan. It changes nothing else.
func (c *Client) RequestPlan(ctx context.Context, customer string, in PlanRequestRequest) (PlanRequest, error) {
	return post[PlanRequest](ctx, c, at("customers", customer, "plan-requests"), in)
}

// PlanRequests lists the newest 100 plans that a customer requested, without the customer's present plan.
func (c *Client) PlanRequests(ctx context.Context, customer string) (List[PlanRequest], error) {
	return get[List[PlanRequest]](ctx, c, at("customers", customer, "plan-requests"))
}

// ScheduleChange changes a customer to another plan at the end of a billing period.
func (c *Client) ScheduleChange(ctx context.Context, customer string, in *ScheduledChangeRequest) (ScheduledChange, error) {
	return put[ScheduledChange](ctx, c, at("customers", customer, "scheduled-change"), in)
}

// ScheduledChange reads a customer's scheduled change of plan.
func (c *Client) ScheduledChange(ctx context.Context, customer string) (ScheduledChange, error) {
	return get[ScheduledChange](ctx, c, at("customers", customer, "scheduled-change"))
}

// DropScheduledChange removes a customer's scheduled change of plan.
func (c *Client) DropScheduledChange(ctx context.Context, customer string) error {
	return c.remove(ctx, at("customers", customer, "scheduled-change"))
}

// Preview returns the result that a change would have, and writes nothing.
func (c *Client) Preview(ctx context.Context, customer string, in PreviewRequest) (Preview, error) {
	return post[Preview](ctx, c, at("customers", customer, "preview"), in)
}

// Overrides lists a customer's overrides.
func (c *Client) Overrides(ctx context.Context, customer string, query url.Values) (List[Override], error) {
	return get[List[Override]](ctx, c, with(at("customers", customer, "overrides"), query))
}

// DeleteOverride ends an override.
func (c *Client) DeleteOverride(ctx context.Context, customer, limit string) error {
	return c.remove(ctx, at("customers", customer, "overrides", limit))
}

// Refusals lists the periods in which limits refused a customer's hits, the newest first.
func (c *Client) Refusals(ctx context.Context, customer string, query url.Values) (List[RefusalPeriod], error) {
	return get[List[RefusalPeriod]](ctx, c, with(at("customers", customer, "refusals"), query))
}

// Reservations lists a customer's open reservations.
func (c *Client) Reservations(ctx context.Context, customer string, query url.Values) (List[OpenReservation], error) {
	return get[List[OpenReservation]](ctx, c, with(at("customers", customer, "reservations"), query))
}
