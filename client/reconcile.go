package client

import (
	"context"
	"time"
)

// Report is the result of a reconciliation.
type Report struct {
	OK       bool      `json:"ok" doc:"True if all checks hold."`
	Checks   []Check   `json:"checks" doc:"All checks, those that hold among them."`
	Archived *Archived `json:"archived,omitempty" doc:"The months that were taken out of the database by quotad archive. Absent if none were."`
}

// Archived describes the months that were archived outside the database.
type Archived struct {
	Before time.Time `json:"before" doc:"Hours before it are gone. What was charged is still held against their sums."`
	Months int       `json:"months" doc:"How many tables of usage were taken out, one for each month. Lines of invoices of that time are not held against hours any more, but against prices, totals and digests as all others."`
}

// Check is a condition that must hold for all rows of a kind.
type Check struct {
	Name     string         `json:"name" enum:"charged_is_booked,caps_count_booked,usage_is_billed,units_are_billed,lines_are_totals,rated_is_billed,periods_are_chained,numbers_have_no_gap,digests_match,adjustments_are_claimed,lines_are_given_back_once,due_is_settled,paid_out_is_paid_in,credits_add_up,periods_can_close,terms_agree,changes_exist" doc:"The name of the check, which never changes. The guide's page on reconcile says what each check means."`
	Checked  int64          `json:"checked" doc:"How many customers' meters, counters, invoices, customers or sellers were looked at."`
	Rows     int64          `json:"rows" doc:"The number of rows for which the check does not hold. 0 if the check holds."`
	Examples []Disagreement `json:"examples" maxItems:"10" doc:"The first rows for which the check does not hold."`
}

// Disagreement is a row for which a check does not hold. Fields that do not apply are zero.
type Disagreement struct {
	Customer string     `json:"customer,omitempty" doc:"The customer's key."`
	Meter    string     `json:"meter,omitempty" doc:"The meter's key."`
	Invoice  string     `json:"invoice,omitempty" doc:"The invoice's id."`
	Number   string     `json:"number,omitempty" doc:"The invoice's number."`
	Seller   string     `json:"seller,omitempty" doc:"The seller's key."`
	At       *time.Time `json:"at,omitempty" doc:"The start of the billing period or hour."`
	Detail   string     `json:"detail" doc:"What is wrong, for people."`
	Expected *int64     `json:"expected,omitempty" doc:"The units, or the amount in minor units, that should be there."`
	Found    *int64     `json:"found,omitempty" doc:"The units, or the amount in minor units, that are there."`
}

// Reconcile checks that charges, usage, invoices and payments agree.
func (c *Client) Reconcile(ctx context.Context) (Report, error) {
	return get[Report](ctx, c, at("reconcile"))
}
