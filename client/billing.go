package client

import (
	"context"
	"net/url"
	"time"
)

// ChargeRequest is the body of POST /v1/customers/{key}/charges.
type ChargeRequest struct {
	Description string `json:"description" minLength:"1" maxLength:"500" doc:"The text of the invoice line, for people."`
	AmountMinor int64  `json:"amount_minor" minimum:"-999999999999999" maximum:"999999999999999" doc:"The amount in minor units, not 0. Below 0, the customer owes less."`
	Currency    string `json:"currency" pattern:"^[A-Z]{3}$" doc:"The ISO 4217 code of the customer's currency."`
	ID          string `json:"id" minLength:"1" maxLength:"255" doc:"The idempotency key. The charge is made once under this id. It is the customer's for ever."`
}

// Charge is a one-off amount on the next invoice.
type Charge struct {
	Customer    string    `json:"customer" doc:"The customer's key."`
	ID          string    `json:"id" doc:"The charge's id, from the request."`
	Description string    `json:"description" doc:"The text of the invoice line, for people."`
	AmountMinor int64     `json:"amount_minor" doc:"The amount in minor units. Below 0, the customer owes less."`
	Currency    string    `json:"currency" doc:"The ISO 4217 code of the currency, such as EUR."`
	At          time.Time `json:"at" doc:"The instant at which the charge was made by the customer's clock, RFC 3339 in UTC."`
	TestClock   string    `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
	Replayed    bool      `json:"replayed" doc:"True if the charge was made before under its id. Nothing was charged again."`
}

// CreditRequest is the body of POST /v1/customers/{key}/credits.
type CreditRequest struct {
	AmountMinor int64   `json:"amount_minor" minimum:"1" maximum:"999999999999999" doc:"The amount in minor units."`
	Currency    string  `json:"currency" pattern:"^[A-Z]{3}$" doc:"The ISO 4217 code of the customer's currency."`
	Kind        string  `json:"kind" required:"false" enum:"promotional,paid" default:"promotional" doc:"Where the credit comes from.\n- promotional (default): it was given.\n- paid: the customer paid for it."`
	Priority    int     `json:"priority" required:"false" minimum:"0" maximum:"100" default:"50" doc:"The place in the order in which credits pay. The lowest pays first."`
	ExpiresAt   *string `json:"expires_at,omitempty" format:"date-time" doc:"The instant from which the credit pays nothing. The credit pays invoices whose periods end before. If null or absent, the credit does not expire."`
	ID          string  `json:"id" minLength:"1" maxLength:"255" doc:"The idempotency key. The credit is granted once under this id. It is the customer's for ever."`
}

// Credit is money that pays invoices.
type Credit struct {
	ID          string     `json:"id" doc:"The credit's id."`
	Kind        string     `json:"kind" enum:"promotional,paid,carried" doc:"Where the credit comes from.\n- promotional: it was given.\n- paid: the customer paid for it.\n- carried: an invoice with a total below 0, or a credit note."`
	AmountMinor int64      `json:"amount_minor" doc:"The amount of the credit as it was granted, in minor units."`
	LeftMinor   int64      `json:"left_minor" doc:"The part of the amount that is left, in minor units."`
	Currency    string     `json:"currency" doc:"The ISO 4217 code of the currency, such as EUR."`
	Priority    int        `json:"priority" doc:"The place in the order in which credits pay, from 0 to 100. The lowest pays first."`
	ExpiresAt   *time.Time `json:"expires_at" doc:"The instant from which the credit pays nothing, RFC 3339 in UTC. Null if the credit does not expire."`
	At          time.Time  `json:"at" doc:"The instant at which the credit was granted by the customer's clock, RFC 3339 in UTC."`
}

// Granted is a credit at the time of its grant.
type Granted struct {
	Customer string `json:"customer" doc:"The customer's key."`
	Credit
	TestClock string `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
	Replayed  bool   `json:"replayed" doc:"True if the credit was granted before under its id. Nothing was granted again."`
}

// WithdrawRequest is the body of POST /v1/customers/{key}/credits/{id}/withdraw.
type WithdrawRequest struct {
	AmountMinor *int64 `json:"amount_minor,omitempty" minimum:"1" maximum:"999999999999999" doc:"The amount in minor units, at most what is left. When left out, all that is left."`
	Reason      string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason for the withdrawal, for people."`
	ID          string `json:"id" minLength:"1" maxLength:"255" doc:"The idempotency key. The amount is withdrawn once under this id. It is the customer's for ever."`
}

// Withdrawn is a credit after a part of it, or all of it, was withdrawn.
type Withdrawn struct {
	Customer string `json:"customer" doc:"The customer's key."`
	Credit
	WithdrawnMinor int64  `json:"withdrawn_minor" doc:"The amount that this request took back, in minor units."`
	TestClock      string `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
	Replayed       bool   `json:"replayed" doc:"True if the amount was withdrawn before under the id. Nothing was withdrawn again."`
}

// Credits are a customer's credits.
type Credits struct {
	Customer  string        `json:"customer" doc:"The customer's key."`
	TestClock string        `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
	Balances  []Credit      `json:"balances" doc:"The credits, the newest first."`
	Entries   []CreditEntry `json:"entries" doc:"What happened to the credits, the newest first."`
	// NextCursor continues with older credits and older entries.
	NextCursor *string `json:"next_cursor" doc:"The cursor of older credits and entries. Null at the end of both."`
}

// CreditEntry is one movement of a credit.
type CreditEntry struct {
	Credit      string    `json:"credit" doc:"The id of the credit."`
	Kind        string    `json:"kind" enum:"granted,applied,returned,expired,withdrawn" doc:"What happened to the credit.\n- granted: it began.\n- applied: it paid an invoice.\n- returned: it got back what it had paid.\n- expired: what was left expired.\n- withdrawn: it was taken back, or a part of it."`
	AmountMinor int64     `json:"amount_minor" doc:"The amount that the entry adds to what is left of the credit, in minor units. Below 0, the entry takes it off."`
	Invoice     *string   `json:"invoice" doc:"The id of the invoice that the entry is about. Null if it is about no invoice."`
	At          time.Time `json:"at" doc:"The instant of the entry by the customer's clock, RFC 3339 in UTC."`
	Reason      string    `json:"reason,omitempty" doc:"The reason for a withdrawal, for people. Absent for other entries."`
}

// Account is a customer's billing account.
type Account struct {
	StartsAt    time.Time  `json:"starts_at" doc:"The instant at which billing begins, RFC 3339 in UTC. Earlier usage is never billed."`
	TrialEndsAt *time.Time `json:"trial_ends_at" doc:"The end of the trial, RFC 3339 in UTC. Billing periods that end by then cost nothing. Null without a trial."`
	EndsAt      *time.Time `json:"ends_at" doc:"The instant at which billing ends, RFC 3339 in UTC. Null if billing does not end."`
	AfterEnd    string     `json:"after_end" enum:"block,free" doc:"What becomes of hits and reservations after ends_at: they are refused, or they go on and are free."`
	Seller      string     `json:"seller" doc:"The key of the seller who sends the invoices."`
	Buyer       Buyer      `json:"buyer" doc:"The buyer to whom invoices are addressed."`
	Taxes       []TaxRate  `json:"taxes" doc:"The taxes of invoices, all inclusive or all exclusive."`
	DueDays     int        `json:"due_days" doc:"Calendar days from an invoice's finalization until it is due, at the same wall clock of the customer's timezone."`

	OrderReference string   `json:"order_reference,omitempty" doc:"The buyer's order reference, printed on invoices. Absent if none was written."`
	Notes          []string `json:"notes,omitempty" doc:"Lines that are printed on each invoice of the customer. Absent if none were written."`

	Warnings []Warning `json:"warnings,omitempty" doc:"What the PDF cannot show as it was written. Absent if there is nothing to warn of."`

	Currency    string     `json:"currency" doc:"The ISO 4217 code of the customer's currency, which is fixed when the first period begins."`
	BilledUntil *time.Time `json:"billed_until" doc:"The end of the last closed billing period, RFC 3339 in UTC. Null if no period is closed."`
	TestClock   string     `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
}

// AdjustmentRequest is the body of POST /v1/customers/{key}/adjustments.
type AdjustmentRequest struct {
	Meter  string  `json:"meter" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The meter's key. The plan may have lost the meter."`
	Cost   int64   `json:"cost" minimum:"-999999999999999" maximum:"999999999999999" doc:"Units to add to the usage. Below 0, the units are taken off. 0 is refused. Limits are not concerned."`
	Reason string  `json:"reason" minLength:"1" maxLength:"500" doc:"The reason why the usage is corrected, for people."`
	At     *string `json:"at,omitempty" format:"date-time" doc:"- The units are booked in the hour of this instant.\n- When left out, this is now by the customer's clock.\n- It may lie in a billing period that has ended, and not in the future."`
	ID     *string `json:"id,omitempty" minLength:"1" maxLength:"255" doc:"The idempotency key, required here or as the header Idempotency-Key. The adjustment is made once, however often it is sent with this id."`
}

// Adjustment is a correction of usage.
type Adjustment struct {
	Customer  string    `json:"customer" doc:"The customer's key."`
	Meter     string    `json:"meter" doc:"The meter's key."`
	Cost      int64     `json:"cost" doc:"Units added to the usage. Below 0, the units were taken off."`
	Reason    string    `json:"reason" doc:"The reason for the adjustment, for people."`
	At        time.Time `json:"at" doc:"The instant in whose hour the units are booked, RFC 3339 in UTC."`
	TestClock string    `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
	Replayed  bool      `json:"replayed" doc:"True if the adjustment was made before under its id. Nothing was adjusted again."`
}

// SellerRequest is the body of PUT /v1/sellers/{key}.
type SellerRequest struct {
	Name         string   `json:"name" minLength:"1" maxLength:"200" doc:"The seller's name, printed on invoices."`
	Address      []string `json:"address" required:"false" maxItems:"20" doc:"The lines of the address."`
	Country      string   `json:"country,omitempty" maxLength:"200" doc:"The country. A code of ISO 3166, such as DE, is printed by its name."`
	TaxID        string   `json:"tax_id,omitempty" maxLength:"200" doc:"The tax number, such as DE123456789, printed on invoices."`
	Registration string   `json:"registration,omitempty" maxLength:"200" doc:"Where the company is registered, and as what."`
	Email        string   `json:"email,omitempty" maxLength:"200" doc:"An email address."`
	Payment      []string `json:"payment" required:"false" maxItems:"20" doc:"Lines on invoices that say how to pay."`
	Footer       []string `json:"footer" required:"false" maxItems:"20" doc:"Lines at the end of invoices."`

	Prefix           string `json:"prefix,omitempty" maxLength:"20" doc:"The text before the numbers of later invoices. A new prefix begins at 1. A prefix that the seller had before goes on."`
	CreditNotePrefix string `json:"credit_note_prefix,omitempty" maxLength:"20" doc:"Credit notes are numbered in a series of their own, with this prefix. When left out, they are numbered with the invoices."`
	NextNumber       *int64 `json:"next_number,omitempty" minimum:"1" maximum:"999999999999999" doc:"The number of the next invoice. It may only rise. When left out, it stays as it is."`
}

// Warning reports a write that succeeded and may not have the desired effect.
type Warning struct {
	Field  string `json:"field" doc:"The path of the field, such as buyer.name."`
	Detail string `json:"detail" doc:"What the PDF cannot show of the field, for people."`
}

// Seller is the party that issues invoices.
type Seller struct {
	Key          string   `json:"key" doc:"The seller's key."`
	Name         string   `json:"name" doc:"The seller's name. Invoices of a seller without a name are held."`
	Address      []string `json:"address" doc:"The lines of the address."`
	Country      string   `json:"country,omitempty" doc:"The country, as it was written: a code of ISO 3166 such as DE, or a name. Absent if none was written."`
	TaxID        string   `json:"tax_id,omitempty" doc:"The tax number, such as DE123456789, printed on invoices. Absent if none was written."`
	Registration string   `json:"registration,omitempty" doc:"Where the company is registered, and as what. Absent if none was written."`
	Email        string   `json:"email,omitempty" doc:"An email address. Absent if none was written."`
	Payment      []string `json:"payment,omitempty" doc:"Lines on invoices that say how to pay. Absent if none were written."`
	Footer       []string `json:"footer,omitempty" doc:"Lines at the end of invoices. Absent if none were written."`

	Prefix           string `json:"prefix" doc:"The text before the number of an invoice. It may be empty."`
	CreditNotePrefix string `json:"credit_note_prefix,omitempty" doc:"The text before the number of a credit note, in a series of their own. Absent if credit notes are numbered with the invoices."`
	NextNumber       int64  `json:"next_number" doc:"The number of the next invoice, after the prefix. Customers on test clocks have numbers of their own."`

	Warnings []Warning `json:"warnings,omitempty" doc:"What the PDF cannot show as it was written. Absent if there is nothing to warn of."`
}

// Buyer is the party that pays invoices.
type Buyer struct {
	Name    string   `json:"name" doc:"The buyer's name. It may be empty."`
	Address []string `json:"address" doc:"The lines of the address."`
	Country string   `json:"country" doc:"The country, as it was written: a code of ISO 3166 such as DE, or a name."`
	TaxID   string   `json:"tax_id,omitempty" doc:"The tax number, such as DE123456789, printed on invoices. Absent if none was written."`
}

// TaxRate is one tax of an invoice. Percent is a decimal number from 0 to 100.
type TaxRate struct {
	Name      string `json:"name" doc:"The name of the tax, such as VAT."`
	Percent   string `json:"percent" doc:"The rate in percent, a decimal from 0 to 100 with at most 6 digits after the point, such as 8.875."`
	Inclusive bool   `json:"inclusive" doc:"True if prices contain the tax. False if the tax is added to the subtotal."`
	Note      string `json:"note,omitempty" maxLength:"200" doc:"A note that is printed beside the tax, such as the ground of a reverse charge."`
}

// Account reads a customer's billing account.
func (c *Client) Account(ctx context.Context, customer string) (Account, error) {
	return get[Account](ctx, c, at("customers", customer, "billing"))
}

// Credits reads a customer's credits.
func (c *Client) Credits(ctx context.Context, customer string, query url.Values) (Credits, error) {
	return get[Credits](ctx, c, with(at("customers", customer, "credits"), query))
}
