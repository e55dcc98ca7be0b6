package client

import (
	"context"
	"net/url"
	"time"
)

// ChargeRequest is the body of POST /v1/customers/{key}/charges.
type ChargeRequest struct {
	Description string `json:"description" minLength:"1" maxLength:"500"`
	AmountMinor int64  `json:"amount_minor" minimum:"-999999999999999" maximum:"999999999999999" doc:"In minor units, not 0. Below 0 the customer owes less."`
	Currency    string `json:"currency" pattern:"^[A-Z]{3}$" doc:"The customer's."`
	ID          string `json:"id" minLength:"1" maxLength:"255" doc:"The charge is made once under it. It is the customer's for ever."`
}

// Charge is an amount on the next invoice.
type Charge struct {
	Customer    string    `json:"customer"`
	ID          string    `json:"id"`
	Description string    `json:"description"`
	AmountMinor int64     `json:"amount_minor"`
	Currency    string    `json:"currency"`
	At          time.Time `json:"at"`
	TestClock   string    `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
	Replayed    bool      `json:"replayed"`
}

// CreditRequest is the body of POST /v1/customers/{key}/credits.
type CreditRequest struct {
	AmountMinor int64   `json:"amount_minor" minimum:"1" maximum:"999999999999999" doc:"In minor units."`
	Currency    string  `json:"currency" pattern:"^[A-Z]{3}$" doc:"The customer's."`
	Kind        string  `json:"kind" required:"false" enum:"promotional,paid" default:"promotional"`
	Priority    int     `json:"priority" required:"false" minimum:"0" maximum:"100" default:"50" doc:"The low first."`
	ExpiresAt   *string `json:"expires_at,omitempty" format:"date-time" doc:"The credit pays invoices whose periods end before. Null or left out: it does not expire."`
	ID          string  `json:"id" minLength:"1" maxLength:"255" doc:"The credit is granted once under it. It is the customer's for ever."`
}

// Credit is money that pays invoices.
type Credit struct {
	ID          string     `json:"id"`
	Kind        string     `json:"kind" enum:"promotional,paid,carried"`
	AmountMinor int64      `json:"amount_minor"`
	LeftMinor   int64      `json:"left_minor"`
	Currency    string     `json:"currency"`
	Priority    int        `json:"priority"`
	ExpiresAt   *time.Time `json:"expires_at"`
	At          time.Time  `json:"at" doc:"When it was granted."`
}

// Granted is a credit that was just granted.
type Granted struct {
	Customer string `json:"customer"`
	Credit
	TestClock string `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
	Replayed  bool   `json:"replayed"`
}

// WithdrawRequest is the body of POST /v1/customers/{key}/credits/{id}/withdraw.
type WithdrawRequest struct {
	AmountMinor *int64 `json:"amount_minor,omitempty" minimum:"1" maximum:"999999999999999" doc:"A part. All that is left when left out."`
	Reason      string `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for people."`
	ID          string `json:"id" minLength:"1" maxLength:"255" doc:"It is withdrawn once under it. It is the customer's for ever."`
}

// Withdrawn is the credit as it is after a part of it, or all, was taken back.
type Withdrawn struct {
	Customer string `json:"customer"`
	Credit
	WithdrawnMinor int64  `json:"withdrawn_minor"`
	TestClock      string `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
	Replayed       bool   `json:"replayed"`
}

// Credits are a customer's credits.
type Credits struct {
	Customer  string        `json:"customer"`
	TestClock string        `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
	Balances  []Credit      `json:"balances" doc:"Credits, the newest first."`
	Entries   []CreditEntry `json:"entries" doc:"How they came and went, the newest first."`
	// NextCursor leads to older credits and older entries.
	NextCursor *string `json:"next_cursor" doc:"Of older credits and entries. Null at the end of both."`
}

// CreditEntry is how a credit came or went.
type CreditEntry struct {
	Credit      string    `json:"credit" doc:"The id of the credit."`
	Kind        string    `json:"kind" enum:"granted,applied,returned,expired,withdrawn"`
	AmountMinor int64     `json:"amount_minor" doc:"What it adds to what is left of the credit."`
	Invoice     *string   `json:"invoice"`
	At          time.Time `json:"at"`
	Reason      string    `json:"reason,omitempty" doc:"Of what was withdrawn."`
}

// Account is the terms by which a customer is billed.
type Account struct {
	StartsAt    time.Time  `json:"starts_at"`
	TrialEndsAt *time.Time `json:"trial_ends_at"`
	EndsAt      *time.Time `json:"ends_at"`
	AfterEnd    string     `json:"after_end" enum:"block,free" doc:"What becomes of hits and reservations after ends_at: they are refused, or they go on and are free."`
	Seller      string     `json:"seller"`
	Buyer       Buyer      `json:"buyer"`
	Taxes       []TaxRate  `json:"taxes"`
	DueDays     int        `json:"due_days"`

	OrderReference string   `json:"order_reference,omitempty"`
	Notes          []string `json:"notes,omitempty"`

	Warnings []Warning `json:"warnings,omitempty" doc:"What papers cannot show as it was written. Left out where there is nothing to tell."`

	Currency    string     `json:"currency" doc:"The customer's. It is fixed when the first period begins."`
	BilledUntil *time.Time `json:"billed_until" doc:"The end of the last closed period, or null."`
	TestClock   string     `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
}

// AdjustmentRequest is the body of POST /v1/customers/{key}/adjustments.
type AdjustmentRequest struct {
	Meter  string  `json:"meter" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The meter's key. The plan may have lost the meter."`
	Cost   int64   `json:"cost" minimum:"-999999999999999" maximum:"999999999999999" doc:"Units to add to the usage. Below 0, the units are taken off. 0 is refused. Limits are not concerned."`
	Reason string  `json:"reason" minLength:"1" maxLength:"500" doc:"Why the usage is corrected, for people."`
	At     *string `json:"at,omitempty" format:"date-time" doc:"- The units are booked in the hour of this instant.\n- When left out, this is now by the customer's clock.\n- It may lie in a billing period that has ended, and not in the future."`
	ID     *string `json:"id,omitempty" minLength:"1" maxLength:"255" doc:"The idempotency key, required here or as the header Idempotency-Key. The adjustment is made once, however often it is sent with this id."`
}

// Adjustment is a correction of usage.
type Adjustment struct {
	Customer  string    `json:"customer"`
	Meter     string    `json:"meter"`
	Cost      int64     `json:"cost"`
	Reason    string    `json:"reason"`
	At        time.Time `json:"at" doc:"The instant in whose hour the units are booked."`
	TestClock string    `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
	Replayed  bool      `json:"replayed"`
}

// SellerRequest is the body of PUT /v1/sellers/{key}.
type SellerRequest struct {
	Name         string   `json:"name" minLength:"1" maxLength:"200"`
	Address      []string `json:"address" required:"false" maxItems:"20" doc:"Lines of the address."`
	Country      string   `json:"country,omitempty" maxLength:"200" doc:"A code of ISO 3166, such as DE, is printed by its name."`
	TaxID        string   `json:"tax_id,omitempty" maxLength:"200"`
	Registration string   `json:"registration,omitempty" maxLength:"200" doc:"Where the company is registered, and as what."`
	Email        string   `json:"email,omitempty" maxLength:"200" doc:"An email address."`
	Payment      []string `json:"payment" required:"false" maxItems:"20" doc:"Lines on papers that say how to pay."`
	Footer       []string `json:"footer" required:"false" maxItems:"20" doc:"Lines at the end of papers."`

	Prefix           string `json:"prefix,omitempty" maxLength:"20" doc:"Begins the numbers of later invoices. A new prefix begins at 1. One that the seller had before goes on."`
	CreditNotePrefix string `json:"credit_note_prefix,omitempty" maxLength:"20" doc:"Credit notes are numbered in a series of their own, with this prefix. When left out, they are numbered with the invoices."`
	NextNumber       *int64 `json:"next_number,omitempty" minimum:"1" maximum:"999999999999999" doc:"The number of the next invoice. It may only rise. When left out, it stays as it is."`
}

// Warning is something that was written and may not come out as it should.
type Warning struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// Seller is who sends invoices.
type Seller struct {
	Key          string   `json:"key"`
	Name         string   `json:"name"`
	Address      []string `json:"address"`
	Country      string   `json:"country,omitempty"`
	TaxID        string   `json:"tax_id,omitempty"`
	Registration string   `json:"registration,omitempty"`
	Email        string   `json:"email,omitempty"`
	Payment      []string `json:"payment,omitempty"`
	Footer       []string `json:"footer,omitempty"`

	Prefix           string `json:"prefix"`
	CreditNotePrefix string `json:"credit_note_prefix,omitempty"`
	NextNumber       int64  `json:"next_number" doc:"The number of the next invoice, after the prefix. Customers on test clocks have numbers of their own."`

	Warnings []Warning `json:"warnings,omitempty" doc:"What papers cannot show as it was written. Left out where there is nothing to tell."`
}

// Buyer is who pays.
type Buyer struct {
	Name    string   `json:"name"`
	Address []string `json:"address"`
	Country string   `json:"country"`
	TaxID   string   `json:"tax_id,omitempty"`
}

// TaxRate is one tax that an invoice bears. Percent is a decimal from 0 to 100.
type TaxRate struct {
	Name      string `json:"name"`
	Percent   string `json:"percent"`
	Inclusive bool   `json:"inclusive"`
	Note      string `json:"note,omitempty" maxLength:"200" doc:"Printed beside the tax, such as the ground of a reverse charge."`
}

// Account reads how a customer is billed.
func (c *Client) Account(ctx context.Context, customer string) (Account, error) {
	return get[Account](ctx, c, at("customers", customer, "billing"))
}

// Credits reads a customer's credits.
func (c *Client) Credits(ctx context.Context, customer string, query url.Values) (Credits, error) {
	return get[Credits](ctx, c, with(at("customers", customer, "credits"), query))
}
