package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Projection is what an invoice would come to.
type Projection struct {
	Lines          []Line `json:"lines"`
	SubtotalMinor  int64  `json:"subtotal_minor"`
	Taxes          []Tax  `json:"taxes"`
	TaxMinor       int64  `json:"tax_minor"`
	TotalMinor     int64  `json:"total_minor"`
	CreditsMinor   int64  `json:"credits_minor"`
	AmountDueMinor int64  `json:"amount_due_minor"`
}

// Tax is one tax of an invoice.
type Tax struct {
	Name      string `json:"name"`
	Percent   string `json:"percent"`
	BaseMinor int64  `json:"base_minor"`
	TaxMinor  int64  `json:"tax_minor"`
	Note      string `json:"note,omitempty" doc:"Printed beside the tax."`
}

// SellerOnPaper is a seller as an invoice names it.
type SellerOnPaper struct {
	Key     string   `json:"key"`
	Name    string   `json:"name"`
	Address []string `json:"address"`

	Country      string   `json:"country,omitempty"`
	TaxID        string   `json:"tax_id,omitempty"`
	Registration string   `json:"registration,omitempty"`
	Email        string   `json:"email,omitempty"`
	Payment      []string `json:"payment,omitempty" doc:"Lines that say how to pay."`
	Footer       []string `json:"footer,omitempty" doc:"Lines at the end of papers."`
}

// Line is one line of an invoice. Amounts are in minor units of the invoice's currency.
type Line struct {
	N           int        `json:"n"`
	Kind        string     `json:"kind" enum:"usage,base,unused,correction,charge,minimum"`
	Meter       *string    `json:"meter"`
	Description string     `json:"description"`
	From        time.Time  `json:"from"`
	To          time.Time  `json:"to"`
	Quantity    int64      `json:"quantity"`
	Included    int64      `json:"included"`
	PlanVersion int        `json:"plan_version"`
	Tiers       []TierLine `json:"tiers" doc:"What each tier adds. Amounts are exact, in major units, the flat price in them."`
	AmountMinor int64      `json:"amount_minor"`
	OfInvoice   *string    `json:"of_invoice" doc:"The id of the invoice that the line corrects or credits, or null."`

	UnitPrice    *string    `json:"unit_price" doc:"What each unit beyond the included ones costs, in major units, as the price says it. Of usage and corrections by model per_unit."`
	PackageSize  *int64     `json:"package_size" doc:"The units of a package. Each begun one beyond the included units costs package_price. Of usage and corrections by model package."`
	PackagePrice *string    `json:"package_price"`
	Level        *LineLevel `json:"level" doc:"Of usage of a level meter, else null. quantity is exact, rounded to units."`
	Applied      *string    `json:"applied" doc:"Of usage: minimum or maximum, if the minimum of the price lifted the amount, or the maximum lowered it. Else null."`

	Part       *Part  `json:"part" doc:"Which part of a whole period the line covers. Null if the line covers all of it, and of charges and credit notes."`
	WholeMinor *int64 `json:"whole_minor" doc:"What the whole period costs, of which the line has its part: of base and unused the base price, of minimum the plan's minimum, of usage the minimum or maximum that was applied. Else null."`

	TestClock string `json:"test_clock,omitempty" doc:"Of the preview of an adjustment: the test clock that the customer lives by."`
}

// LineLevel is the level that a line bills.
type LineLevel struct {
	By    string `json:"by" enum:"average,peak,last" doc:"Which level of the period is billed."`
	Exact string `json:"exact" doc:"The level, with 6 digits after the point."`
}

// Part is a part [From, To) of the whole [OfFrom, OfTo).
type Part struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	OfFrom time.Time `json:"of_from"`
	OfTo   time.Time `json:"of_to"`
}

// Invoice is an invoice or a credit note.
type Invoice struct {
	ID             *string       `json:"id" doc:"Null for an invoice that is upcoming or previewed."`
	Number         *string       `json:"number" doc:"Null for a draft. The seller's numbers have no gap."`
	Kind           string        `json:"kind" enum:"period,opening,credit_note"`
	Customer       string        `json:"customer"`
	TestClock      string        `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
	Status         string        `json:"status" enum:"draft,finalized,paid,void,credited"`
	Currency       string        `json:"currency"`
	PeriodStart    time.Time     `json:"period_start"`
	PeriodEnd      time.Time     `json:"period_end"`
	PriceVersion   int           `json:"price_version" doc:"The plan version that prices the period."`
	Lines          []Line        `json:"lines"`
	SubtotalMinor  int64         `json:"subtotal_minor" doc:"The sum of the lines."`
	Taxes          []Tax         `json:"taxes"`
	TaxMinor       int64         `json:"tax_minor"`
	TotalMinor     int64         `json:"total_minor"`
	CreditsMinor   int64         `json:"credits_minor" doc:"What credits pay of the total."`
	AmountDueMinor int64         `json:"amount_due_minor" doc:"The total less credits, as it was at finalization."`
	CreditedMinor  int64         `json:"credited_minor" doc:"What credit notes have credited since, taxes included. "`
	PaidMinor      int64         `json:"paid_minor" doc:"What the payments come to."`
	OpenMinor      int64         `json:"open_minor" doc:"What is still to be paid: what is due, less what credit notes took of what was open, less paid_minor. 0 of what is not finalized."`
	Payments       []Payment     `json:"payments" doc:"What was paid since it was finalized. Reversed payments are not among them."`
	Reversed       []Payment     `json:"reversed_payments,omitempty" doc:"Payments that count no more."`
	Money          *NoteMoney    `json:"money,omitempty" doc:"Of a credit note: where its total went."`
	Seller         SellerOnPaper `json:"seller"`
	Buyer          Buyer         `json:"buyer"`
	OrderReference string        `json:"order_reference,omitempty" doc:"The buyer's."`
	Notes          []string      `json:"notes,omitempty" doc:"Lines of the account."`
	DueAt          *time.Time    `json:"due_at" doc:"Null for a draft and for a credit note."`
	Overdue        bool          `json:"overdue" doc:"Something is open, and due_at is over."`
	Held           *string       `json:"held" doc:"Why the invoice stays a draft, or null."`
	Of             *string       `json:"of" doc:"The id of the invoice that this one credits or replaces, or null."`
	FinalizedAt    *time.Time    `json:"finalized_at"`
	PaidAt         *time.Time    `json:"paid_at" doc:"When the last payment came, of what is paid. What is paid because nothing was due has the instant of its finalization. Null of a credit note, and where credit notes took all that was open."`
	Reference      *string       `json:"reference" doc:"Of the last payment that has one, or null."`
	VoidReason     *string       `json:"void_reason"`
	Reason         *string       `json:"reason" doc:"Why the credit note was made, or null."`

	Projection *Projection `json:"projection,omitempty" doc:"What an upcoming invoice comes to if usage goes on at its pace so far, when the request asks for it. Caps and hard limits stop the projection. Absent while the period is too young."`
}

// Payment is what was paid of an invoice at once.
type Payment struct {
	N           int       `json:"n" doc:"Its number among the invoice's payments, from 1. It never changes."`
	At          time.Time `json:"at"`
	AmountMinor int64     `json:"amount_minor"`
	Kind        string    `json:"kind" enum:"payment,credits" doc:"- payment: money from outside.\n- credits: credits of the customer that were applied after the invoice was finalized."`
	Reference   *string   `json:"reference"`

	ReversedAt *time.Time `json:"reversed_at,omitempty"`
	Reason     string     `json:"reversal_reason,omitempty"`
}

// NoteMoney is where the total of a credit note went.
type NoteMoney struct {
	OpenMinor     int64 `json:"open_minor" doc:"So much less is owed of the invoice."`
	CreditsMinor  int64 `json:"credits_minor" doc:"Became a credit of kind carried."`
	OutsideMinor  int64 `json:"outside_minor" doc:"The seller pays it out."`
	ReturnedMinor int64 `json:"returned_minor" doc:"Went back to the credits that had paid the invoice."`
}

// PayRequest is the body of POST /v1/invoices/{id}/pay.
type PayRequest struct {
	AmountMinor *int64  `json:"amount_minor,omitempty" minimum:"1" maximum:"999999999999999" doc:"A part. All that is open when left out."`
	Reference   string  `json:"reference,omitempty" maxLength:"500" doc:"What the payment is known by, for people."`
	ID          *string `json:"id,omitempty" minLength:"1" maxLength:"255" doc:"The payment is noted once under it, here or as the header Idempotency-Key. It is the customer's for ever."`
}

// ReverseRequest is the body of POST /v1/invoices/{id}/payments/{n}/reverse.
type ReverseRequest struct {
	Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for people."`
	ID     string `json:"id" minLength:"1" maxLength:"255" doc:"The payment is reversed once under it. It is the customer's for ever."`
}

// VoidRequest is the body of POST /v1/invoices/{id}/void.
type VoidRequest struct {
	Reason  string `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for people."`
	Reissue bool   `json:"reissue" required:"false" default:"false" doc:"Makes a new draft of the same period and prices."`
}

// NoteRequest is the body of POST /v1/invoices/{id}/credit-notes.
type NoteRequest struct {
	Lines  []NoteLine `json:"lines" minItems:"1"`
	Reason string     `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for people."`
	To     string     `json:"to" enum:"credits,outside" doc:"Where the money goes that is beyond what is open of the invoice.\n- credits: it becomes a credit of kind carried.\n- outside: the seller pays it out.\n\nIn both cases at most what payments and credits of kind paid have paid, over all notes. The rest returns to the credits that it came from."`
	ID     string     `json:"id" minLength:"1" maxLength:"255" doc:"The credit note is made once under it. It is the customer's for ever."`
}

// NoteLine is what is credited of one line.
type NoteLine struct {
	N           int   `json:"n" minimum:"1" doc:"The line of the invoice."`
	AmountMinor int64 `json:"amount_minor" minimum:"1" doc:"As the line's amount: without an exclusive tax."`
}

// LineUsage is the usage that a line bills.
type LineUsage struct {
	Hours       []LineHour       `json:"hours"`
	Adjustments []LineAdjustment `json:"adjustments"`
	Points      []UsagePoint     `json:"points,omitempty" doc:"Of a line of a level meter, which has no hours: the days of its period."`
	NextCursor  *string          `json:"next_cursor" doc:"Hours come first, and then adjustments. Null when these are the last ones: then all pages together add up to the line's quantity."`
}

// LineHour is one hour of it.
type LineHour struct {
	Start    time.Time `json:"start"`
	Admitted int64     `json:"admitted"`
}

// LineAdjustment is an adjustment that a line bills.
type LineAdjustment struct {
	Hour   time.Time `json:"hour" doc:"The start of the hour that it concerns."`
	At     time.Time `json:"at" doc:"When it was made."`
	Cost   int64     `json:"cost"`
	Reason string    `json:"reason"`
}

// TierLine is what one tier adds to a line. Amount is an exact decimal in major units, with the
// tier's flat price in it.
type TierLine struct {
	UpTo      *int64  `json:"up_to"`
	Quantity  Units   `json:"quantity"`
	Amount    string  `json:"amount"`
	UnitPrice string  `json:"unit_price"`
	FlatPrice *string `json:"flat_price"` // nil: none
}

// Units is a decimal number of units: "12" of a meter that counts what passes, and "3.500000", with 6 digits after the point, of a
// level meter. In JSON, the former is a number and the latter is a string.
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

// FinalizeInvoice makes a draft final.
func (c *Client) FinalizeInvoice(ctx context.Context, id string) error {
	_, err := c.Do(ctx, http.MethodPost, at("invoices", id, "finalize"), nil, nil, nil)
	return err
}

// PayInvoice notes what was paid of an invoice, and returns the invoice as it is then. With an id in
// the request it may be sent again: the payment is noted once.
func (c *Client) PayInvoice(ctx context.Context, id string, in PayRequest) (Invoice, error) {
	return post[Invoice](ctx, c, at("invoices", id, "pay"), in)
}

// InvoiceFile reads an invoice as html, pdf or csv. The header says its type.
func (c *Client) InvoiceFile(ctx context.Context, id, ext string) (file []byte, header http.Header, err error) {
	header, err = c.Do(ctx, http.MethodGet, at("invoices", id+"."+ext), nil, nil, &file)
	return file, header, err
}

// InvoicesCSV reads a list of invoices as CSV.
func (c *Client) InvoicesCSV(ctx context.Context, query url.Values) (file []byte, err error) {
	_, err = c.Do(ctx, http.MethodGet, with(at("invoices.csv"), query), nil, nil, &file)
	return file, err
}
