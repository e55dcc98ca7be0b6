package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Projection is the estimated total of an invoice.
type Projection struct {
	Lines          []Line `json:"lines" doc:"The lines of the invoice, with the projected quantities."`
	SubtotalMinor  int64  `json:"subtotal_minor" doc:"The sum of the lines, in minor units."`
	Taxes          []Tax  `json:"taxes" doc:"The taxes, one for each rate."`
	TaxMinor       int64  `json:"tax_minor" doc:"The sum of the taxes, in minor units."`
	TotalMinor     int64  `json:"total_minor" doc:"The amount with taxes, in minor units."`
	CreditsMinor   int64  `json:"credits_minor" doc:"The part of the total that credits would pay, in minor units."`
	AmountDueMinor int64  `json:"amount_due_minor" doc:"The total less credits, in minor units."`
}

// Tax is one tax of an invoice.
type Tax struct {
	Name      string `json:"name" doc:"The name of the tax, such as VAT."`
	Percent   string `json:"percent" doc:"The rate in percent, a decimal from 0 to 100 with at most 6 digits after the point, such as 8.875."`
	BaseMinor int64  `json:"base_minor" doc:"The amount without taxes that the tax is computed on, in minor units."`
	TaxMinor  int64  `json:"tax_minor" doc:"The amount of the tax, in minor units."`
	Note      string `json:"note,omitempty" doc:"A note that is printed beside the tax. Absent if none was written."`
}

// SellerOnPaper is the seller in the form in which an invoice shows it.
type SellerOnPaper struct {
	Key     string   `json:"key" doc:"The seller's key."`
	Name    string   `json:"name" doc:"The seller's name."`
	Address []string `json:"address" doc:"The lines of the address."`

	Country      string   `json:"country,omitempty" doc:"The country, as it was written: a code of ISO 3166 such as DE, or a name. Absent if none was written."`
	TaxID        string   `json:"tax_id,omitempty" doc:"The tax number, such as DE123456789, printed on invoices. Absent if none was written."`
	Registration string   `json:"registration,omitempty" doc:"Where the company is registered, and as what. Absent if none was written."`
	Email        string   `json:"email,omitempty" doc:"An email address. Absent if none was written."`
	Payment      []string `json:"payment,omitempty" doc:"Lines that say how to pay. Absent if none were written."`
	Footer       []string `json:"footer,omitempty" doc:"Lines at the end of invoices. Absent if none were written."`
}

// Line is one line of an invoice. Amounts are in minor units of the invoice's currency.
type Line struct {
	N           int        `json:"n" doc:"The line's number within the invoice, from 1."`
	Kind        string     `json:"kind" enum:"usage,base,unused,correction,charge,minimum" doc:"What the line charges.\n- usage: units of a meter.\n- base: the plan's base price.\n- unused: a base price in advance that is given back.\n- correction: usage of an earlier invoice that changed since.\n- charge: a one-off amount.\n- minimum: the difference to the plan's minimum."`
	Meter       *string    `json:"meter" doc:"The meter's key. Null if the line is about no meter, such as a base price."`
	Description string     `json:"description" doc:"A text for people, as printed on the invoice."`
	From        time.Time  `json:"from" doc:"The start of the time that the line covers, RFC 3339 in UTC. Of a charge, the instant of the charge."`
	To          time.Time  `json:"to" doc:"The exclusive end of the time that the line covers, RFC 3339 in UTC. Of a charge, the instant of the charge."`
	Quantity    int64      `json:"quantity" doc:"Units of the meter, the included ones among them. Of a correction, the units that changed. 0 if the line counts no units."`
	Included    int64      `json:"included" doc:"Units that the price gives free in the time of the line. 0 if the line counts no units."`
	PlanVersion int        `json:"plan_version" doc:"The number of the plan version that prices the line."`
	Tiers       []TierLine `json:"tiers" doc:"The tiers that units fall in, each with its exact amount. Of a correction, the tiers of the units of billed_before and of quantity together. Empty if the model has no tiers."`
	AmountMinor int64      `json:"amount_minor" doc:"The amount of the line in minor units, without exclusive taxes. Below 0 if the line gives money back."`
	OfInvoice   *string    `json:"of_invoice" doc:"The id of the invoice that the line corrects or credits, or null."`

	UnitPrice    *string    `json:"unit_price" doc:"The price of each unit beyond the included ones, a decimal number in major units. Of usage and corrections by model per_unit, else null."`
	PackageSize  *int64     `json:"package_size" doc:"Units in a package. Each begun package beyond the included units costs package_price. Of usage and corrections by model package, else null."`
	PackagePrice *string    `json:"package_price" doc:"The price of a package in major units, a decimal number. Of usage and corrections by model package, else null."`
	Level        *LineLevel `json:"level" doc:"The level that is billed, of usage of a level meter, else null. quantity is this level, rounded to whole units."`
	Applied      *string    `json:"applied" enum:"minimum,maximum" doc:"Of usage and corrections: minimum or maximum, if the minimum of the price lifted the amount, or the maximum lowered it. Else null."`

	Part       *Part  `json:"part" doc:"The part of a whole period that the line covers. Null if the line covers all of it, and of charges and credit notes."`
	WholeMinor *int64 `json:"whole_minor" doc:"What the whole period costs, of which the line has its part: of base and unused the base price, of minimum the plan's minimum, of usage and corrections the minimum or maximum that was applied. Else null."`

	BilledBefore *BilledBefore `json:"billed_before,omitempty" doc:"What was billed before a correction. The amount of the line is the cost of the units of billed_before and of quantity together, less billed_before.amount_minor. Absent for other lines."`

	TestClock string `json:"test_clock,omitempty" doc:"Of the preview of an adjustment, the key of the test clock that the customer lives by. Else absent."`
}

// LineLevel is the billed level of a line.
type LineLevel struct {
	By    string `json:"by" enum:"average,peak,last" doc:"The level of the billing period that is billed."`
	Exact string `json:"exact" doc:"The level in units, a decimal number with 6 digits after the point."`
}

// BilledBefore is the amount that was billed for a line before its correction.
type BilledBefore struct {
	Quantity      int64 `json:"quantity" doc:"The units of the corrected line, with all corrections before this one."`
	AmountMinor   int64 `json:"amount_minor" doc:"What the corrected line and all corrections before this one came to, in minor units."`
	CreditedMinor int64 `json:"credited_minor" doc:"What credit notes took of amount_minor. If the cost of all units is less, credited_minor counts instead of the cost."`
}

// Part is a part [From, To) of the whole [OfFrom, OfTo).
type Part struct {
	From   time.Time `json:"from" doc:"The start of the part, RFC 3339 in UTC."`
	To     time.Time `json:"to" doc:"The exclusive end of the part, RFC 3339 in UTC."`
	OfFrom time.Time `json:"of_from" doc:"The start of the whole, RFC 3339 in UTC."`
	OfTo   time.Time `json:"of_to" doc:"The exclusive end of the whole, RFC 3339 in UTC."`
}

// Invoice is an invoice or a credit note.
type Invoice struct {
	ID             *string       `json:"id" doc:"The invoice's id. Null for an invoice that is upcoming or previewed."`
	Number         *string       `json:"number" doc:"The invoice's number, made of the seller's prefix and an integer. Null for a draft. The seller's numbers have no gap."`
	Kind           string        `json:"kind" enum:"period,opening,credit_note" doc:"What the invoice is for.\n- period: a billing period that ended.\n- opening: the first base price that is due in advance.\n- credit_note: it credits lines of an earlier invoice."`
	Customer       string        `json:"customer" doc:"The customer's key."`
	TestClock      string        `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
	Status         string        `json:"status" enum:"draft,finalized,paid,void,credited" doc:"The state of the invoice.\n- draft: it may still change.\n- finalized: it is numbered and something is open.\n- paid: nothing is open.\n- void: it was taken back.\n- credited: credit notes cover all of it."`
	Currency       string        `json:"currency" doc:"The ISO 4217 code of the currency, such as EUR."`
	PeriodStart    time.Time     `json:"period_start" doc:"The start of the billing period, RFC 3339 in UTC."`
	PeriodEnd      time.Time     `json:"period_end" doc:"The exclusive end of the billing period, RFC 3339 in UTC."`
	PriceVersion   int           `json:"price_version" doc:"The number of the plan version that prices the period."`
	Lines          []Line        `json:"lines" doc:"The lines of the invoice, in the order of their numbers."`
	SubtotalMinor  int64         `json:"subtotal_minor" doc:"The sum of the lines, in minor units."`
	Taxes          []Tax         `json:"taxes" doc:"The taxes, one for each rate."`
	TaxMinor       int64         `json:"tax_minor" doc:"The sum of the taxes, in minor units."`
	TotalMinor     int64         `json:"total_minor" doc:"The amount with taxes, in minor units. Below 0 if the customer gets money back, as of a credit note."`
	CreditsMinor   int64         `json:"credits_minor" doc:"The part of the total that credits pay, in minor units."`
	AmountDueMinor int64         `json:"amount_due_minor" doc:"The total less credits, in minor units, as it was at finalization."`
	CreditedMinor  int64         `json:"credited_minor" doc:"The amount that credit notes have credited since, with taxes, in minor units."`
	PaidMinor      int64         `json:"paid_minor" doc:"The sum of the payments, in minor units."`
	OpenMinor      int64         `json:"open_minor" doc:"The amount that is still to be paid, in minor units: what is due, less what credit notes took of what was open, less paid_minor. 0 if the invoice is not finalized."`
	Payments       []Payment     `json:"payments" doc:"The payments since the invoice was finalized. Reversed payments are not among them."`
	Reversed       []Payment     `json:"reversed_payments,omitempty" doc:"The payments that were reversed and count no more. Absent without such a payment."`
	Money          *NoteMoney    `json:"money,omitempty" doc:"Where the total of a credit note went. Absent for other invoices."`
	Seller         SellerOnPaper `json:"seller" doc:"The seller who sends the invoice. A finalized invoice keeps the seller as it was then."`
	Buyer          Buyer         `json:"buyer" doc:"The buyer to whom the invoice is addressed. A finalized invoice keeps the buyer as it was then."`
	OrderReference string        `json:"order_reference,omitempty" doc:"The buyer's order reference, printed on invoices. Absent if none was written."`
	Notes          []string      `json:"notes,omitempty" doc:"Lines of the account that are printed on the invoice. Absent if none were written."`
	DueAt          *time.Time    `json:"due_at" doc:"The instant until which the invoice is to be paid, RFC 3339 in UTC. Null for a draft and for a credit note."`
	Overdue        bool          `json:"overdue" doc:"True if something is open and due_at is over."`
	Held           *string       `json:"held" doc:"The reason why the invoice stays a draft, for people. Null if nothing holds the invoice."`
	Of             *string       `json:"of" doc:"The id of the invoice that this invoice credits or replaces. Null if there is none."`
	FinalizedAt    *time.Time    `json:"finalized_at" doc:"The instant at which the invoice was finalized by the customer's clock, RFC 3339 in UTC. Null for a draft."`
	PaidAt         *time.Time    `json:"paid_at" doc:"The instant of the last payment, or of the finalization if nothing was due. Null of what is not paid, of a credit note, and if credit notes took all that was open."`
	Reference      *string       `json:"reference" doc:"The reference of the last payment that has one. Null without such a payment."`
	VoidReason     *string       `json:"void_reason" doc:"The reason why the invoice was taken back, for people. Null unless the invoice is void."`
	Reason         *string       `json:"reason" doc:"The reason for the credit note, for people. Null for other invoices."`

	Projection *Projection `json:"projection,omitempty" doc:"What an upcoming invoice comes to if usage goes on at its pace so far, when the request asks for it. Caps and hard limits stop the projection. Absent while the period is too young."`
}

// Payment is one payment of an invoice.
type Payment struct {
	N           int       `json:"n" doc:"The payment's number among the invoice's payments, from 1. The number never changes."`
	At          time.Time `json:"at" doc:"The instant at which the payment was noted by the customer's clock, RFC 3339 in UTC."`
	AmountMinor int64     `json:"amount_minor" doc:"The amount that was paid, in minor units."`
	Kind        string    `json:"kind" enum:"payment,credits" doc:"- payment: money from outside.\n- credits: credits of the customer that were applied after the invoice was finalized."`
	Reference   *string   `json:"reference" doc:"The name by which people know the payment, such as a transfer. Null if none was given."`

	ReversedAt *time.Time `json:"reversed_at,omitempty" doc:"The instant at which the payment was reversed by the customer's clock, RFC 3339 in UTC. Absent if the payment counts."`
	Reason     string     `json:"reversal_reason,omitempty" doc:"The reason why the payment was reversed, for people. Absent if the payment counts."`
}

// NoteMoney shows how the total of a credit note was returned.
type NoteMoney struct {
	OpenMinor     int64 `json:"open_minor" doc:"The part by which less is owed of the invoice, in minor units."`
	CreditsMinor  int64 `json:"credits_minor" doc:"The part that became a credit of kind carried, in minor units."`
	OutsideMinor  int64 `json:"outside_minor" doc:"The part that the seller pays out, in minor units."`
	ReturnedMinor int64 `json:"returned_minor" doc:"The part that went back to the credits that had paid the invoice, in minor units."`
}

// PayRequest is the body of POST /v1/invoices/{id}/pay.
type PayRequest struct {
	AmountMinor *int64  `json:"amount_minor,omitempty" minimum:"1" maximum:"999999999999999" doc:"The amount in minor units, at most what is open. When left out, all that is open."`
	Reference   string  `json:"reference,omitempty" maxLength:"500" doc:"The name by which people know the payment, such as a transfer."`
	ID          *string `json:"id,omitempty" minLength:"1" maxLength:"255" doc:"The idempotency key, here or as the header Idempotency-Key. The payment is noted once under this id. It is the customer's for ever."`
}

// ReverseRequest is the body of POST /v1/invoices/{id}/payments/{n}/reverse.
type ReverseRequest struct {
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason for the reversal, for people."`
	ID     string `json:"id" minLength:"1" maxLength:"255" doc:"The idempotency key. The payment is reversed once under this id. It is the customer's for ever."`
}

// VoidRequest is the body of POST /v1/invoices/{id}/void.
type VoidRequest struct {
	Reason  string `json:"reason" minLength:"1" maxLength:"500" doc:"The reason why the invoice is taken back, for people."`
	Reissue bool   `json:"reissue" required:"false" default:"false" doc:"True to make a new draft of the same period and prices."`
}

// NoteRequest is the body of POST /v1/invoices/{id}/credit-notes.
type NoteRequest struct {
	Lines  []NoteLine `json:"lines" minItems:"1" doc:"The lines that are credited, each with its amount. At least one."`
	Reason string     `json:"reason" minLength:"1" maxLength:"500" doc:"The reason for the credit note, for people."`
	To     string     `json:"to" enum:"credits,outside" doc:"Where the money goes that is beyond what is open of the invoice.\n- credits: it becomes a credit of kind carried.\n- outside: the seller pays it out.\n\nIn both cases at most what payments and credits of kind paid have paid, over all notes. The rest returns to the credits that it came from."`
	ID     string     `json:"id" minLength:"1" maxLength:"255" doc:"The idempotency key. The credit note is made once under this id. It is the customer's for ever."`
}

// NoteLine is the credited amount of one line.
type NoteLine struct {
	N           int   `json:"n" minimum:"1" doc:"The number of the invoice's line."`
	AmountMinor int64 `json:"amount_minor" minimum:"1" doc:"The amount to credit in minor units. As in the line's amount, exclusive taxes come on top."`
}

// LineUsage is the usage that a line bills.
type LineUsage struct {
	Hours       []LineHour       `json:"hours" doc:"The hours that the line counts, ascending. Empty if the line counts no hours, as a correction or a line of a level meter."`
	Adjustments []LineAdjustment `json:"adjustments" doc:"The adjustments that the line counts, in the order of the hours that they concern."`
	Points      []UsagePoint     `json:"points,omitempty" doc:"The days of the period, of a line of a level meter, which has no hours. Absent for other lines."`
	NextCursor  *string          `json:"next_cursor" doc:"The cursor of the next page. Hours come first, and then adjustments. Null on the last page: then all pages together add up to the line's quantity."`
}

// LineHour is one hour of a line's usage.
type LineHour struct {
	Start    time.Time `json:"start" doc:"The start of the hour, RFC 3339 in UTC. An hour is cut where a billing period starts."`
	Admitted int64     `json:"admitted" doc:"Units that were admitted in the hour."`
}

// LineAdjustment is an adjustment that a line bills.
type LineAdjustment struct {
	Hour   time.Time `json:"hour" doc:"The start of the hour that the adjustment concerns, RFC 3339 in UTC."`
	At     time.Time `json:"at" doc:"The instant at which the adjustment was made, RFC 3339 in UTC."`
	Cost   int64     `json:"cost" doc:"Units that the adjustment added. Below 0, the units were taken off."`
	Reason string    `json:"reason" doc:"The reason for the adjustment, for people."`
}

// TierLine is the share of one tier in a line. Amount is an exact decimal number in major units and includes the
// tier's flat price.
type TierLine struct {
	UpTo      *int64  `json:"up_to" doc:"The last unit of the tier, counted after the included units. Null for the last tier."`
	Quantity  Units   `json:"quantity"`
	Amount    string  `json:"amount" doc:"The amount of the tier with its flat price, an exact decimal number in major units."`
	UnitPrice string  `json:"unit_price" doc:"The price of a unit in the tier, a decimal number in major units."`
	FlatPrice *string `json:"flat_price" doc:"The flat price of the tier, a decimal number in major units. Null if the tier has none."`
}

// Units is a decimal number of units. The units of most meters are whole, such as 12, and are a number in JSON.
// The units of a level meter have 6 digits after the point, such as "3.500000", and are a string in JSON.
type Units string

// MarshalJSON writes the number or the string.
func (u Units) MarshalJSON() ([]byte, error) {
	if strings.Contains(string(u), ".") {
		return []byte(`"` + string(u) + `"`), nil
	}
	return []byte(u), nil
}

// UnmarshalJSON reads the number or the string.
func (u *Units) UnmarshalJSON(raw []byte) error {
	*u = Units(strings.Trim(string(raw), `"`))
	return nil
}

// Invoice reads an invoice.
func (c *Client) Invoice(ctx context.Context, id string) (Invoice, error) {
	return get[Invoice](ctx, c, at("invoices", id))
}

// Invoices lists the invoices.
func (c *Client) Invoices(ctx context.Context, query url.Values) (List[Invoice], error) {
	return get[List[Invoice]](ctx, c, with(at("invoices"), query))
}

// InvoicesOf lists a customer's invoices.
func (c *Client) InvoicesOf(ctx context.Context, customer string, query url.Values) (List[Invoice], error) {
	return get[List[Invoice]](ctx, c, with(at("customers", customer, "invoices"), query))
}

// Upcoming reads the invoice of a customer's running billing period.
func (c *Client) Upcoming(ctx context.Context, customer string, query url.Values) (Invoice, error) {
	return get[Invoice](ctx, c, with(at("customers", customer, "invoices", "upcoming"), query))
}

// LineUsage reads the usage that a line of an invoice bills.
func (c *Client) LineUsage(ctx context.Context, id string, line int, query url.Values) (LineUsage, error) {
	return get[LineUsage](ctx, c, with(at("invoices", id, "lines", strconv.Itoa(line), "usage"), query))
}

// FinalizeInvoice finalizes a draft.
func (c *Client) FinalizeInvoice(ctx context.Context, id string) error {
	_, err := c.Do(ctx, http.MethodPost, at("invoices", id, "finalize"), nil, nil, nil)
	return err
}

// PayInvoice records a payment of an invoice and returns the invoice with the payment. If the request contains
// an id and is sent again, the payment is recorded once.
func (c *Client) PayInvoice(ctx context.Context, id string, in PayRequest) (Invoice, error) {
	return post[Invoice](ctx, c, at("invoices", id, "pay"), in)
}

// InvoiceFile reads an invoice as html, pdf or csv. The returned header contains the media type.
func (c *Client) InvoiceFile(ctx context.Context, id, ext string) (file []byte, header http.Header, err error) {
	header, err = c.Do(ctx, http.MethodGet, at("invoices", id+"."+ext), nil, nil, &file)
	return file, header, err
}

// InvoicesCSV reads a list of invoices as CSV.
func (c *Client) InvoicesCSV(ctx context.Context, query url.Values) (file []byte, err error) {
	_, err = c.Do(ctx, http.MethodGet, with(at("invoices.csv"), query), nil, nil, &file)
	return file, err
}
