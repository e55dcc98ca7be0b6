package api

import (
	"net/http"
	"strconv"
	"time"

	"quotad/internal/api/problem"
	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/ledger"
	"quotad/internal/quota/model"
)

// invoiceBody is an invoice as it is shown.
type invoiceBody struct {
	ID             *string       `json:"id" doc:"Null for an upcoming invoice."`
	Number         *string       `json:"number" doc:"Null for a draft. The seller's numbers have no gap."`
	Kind           string        `json:"kind" enum:"period,opening,credit_note"`
	Customer       string        `json:"customer"`
	TestClock      string        `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
	Status         string        `json:"status" enum:"draft,finalized,paid,void,credited"`
	Currency       string        `json:"currency"`
	PeriodStart    time.Time     `json:"period_start"`
	PeriodEnd      time.Time     `json:"period_end"`
	PriceVersion   int           `json:"price_version" doc:"The plan version that prices the period."`
	Lines          []lineBody    `json:"lines"`
	SubtotalMinor  int64         `json:"subtotal_minor" doc:"The sum of the lines."`
	Taxes          []taxBody     `json:"taxes"`
	TaxMinor       int64         `json:"tax_minor"`
	TotalMinor     int64         `json:"total_minor"`
	CreditsMinor   int64         `json:"credits_minor" doc:"What credits pay of the total."`
	AmountDueMinor int64         `json:"amount_due_minor" doc:"The total less credits, as it was at finalization."`
	CreditedMinor  int64         `json:"credited_minor" doc:"What credit notes have credited since, taxes included. An invoice that is not paid owes so much less."`
	PaidMinor      *int64        `json:"paid_minor" doc:"What was paid. Null where a version that kept no amount noted the payment, and credit notes took something off."`
	OpenMinor      int64         `json:"open_minor" doc:"What is still to be paid: of a finalized invoice what is due, less what credit notes took off. Else 0."`
	Seller         sellerOnPaper `json:"seller"`
	Buyer          billing.Buyer `json:"buyer"`
	DueAt          *time.Time    `json:"due_at" doc:"Null for a draft and for a credit note."`
	Held           *string       `json:"held" doc:"Why the invoice stays a draft, or null."`
	Of             *string       `json:"of" doc:"The id of the invoice that this one credits or replaces, or null."`
	FinalizedAt    *time.Time    `json:"finalized_at"`
	PaidAt         *time.Time    `json:"paid_at" doc:"When it was paid, or null. Also null of a credit note, and of what was paid before this was noted."`
	Reference      *string       `json:"reference" doc:"Of the payment, or null."`
	VoidReason     *string       `json:"void_reason"`
	Reason         *string       `json:"reason" doc:"Why the credit note was made, or null."`

	Projection *projectionBody `json:"projection,omitempty" doc:"Of an upcoming invoice, where the request asks for it: what the invoice would come to if usage went on at the pace of the period so far. Left out while the period is too young."`
}

// projectionBody is what an invoice would come to.
type projectionBody struct {
	Lines          []lineBody `json:"lines"`
	SubtotalMinor  int64      `json:"subtotal_minor"`
	Taxes          []taxBody  `json:"taxes"`
	TaxMinor       int64      `json:"tax_minor"`
	TotalMinor     int64      `json:"total_minor"`
	CreditsMinor   int64      `json:"credits_minor"`
	AmountDueMinor int64      `json:"amount_due_minor"`
}

// showProjection is nil for nil.
func showProjection(i *billing.Invoice) *projectionBody {
	if i == nil {
		return nil
	}
	shown := showInvoice(i)
	return &projectionBody{
		shown.Lines, shown.SubtotalMinor, shown.Taxes, shown.TaxMinor, shown.TotalMinor, shown.CreditsMinor, shown.AmountDueMinor,
	}
}

type lineBody struct {
	N           int                `json:"n"`
	Kind        string             `json:"kind" enum:"usage,base,unused,correction,charge,minimum"`
	Meter       *string            `json:"meter"`
	Description string             `json:"description"`
	From        time.Time          `json:"from"`
	To          time.Time          `json:"to"`
	Quantity    int64              `json:"quantity"`
	Included    int64              `json:"included"`
	PlanVersion int                `json:"plan_version"`
	Tiers       []billing.TierLine `json:"tiers" doc:"What each tier adds. Amounts are exact, in major units, the flat price in them. Prices are null in invoices that were finalized before lines said their price."`
	AmountMinor int64              `json:"amount_minor"`
	OfInvoice   *string            `json:"of_invoice" doc:"The id of the invoice that the line corrects or credits, or null."`

	UnitPrice    *string            `json:"unit_price" doc:"What each unit beyond the included ones costs, in major units, as the price says it. Of usage and corrections by model per_unit."`
	PackageSize  *int64             `json:"package_size" doc:"The units of a package. Each begun one beyond the included units costs package_price. Of usage and corrections by model package."`
	PackagePrice *string            `json:"package_price"`
	Level        *map[string]string `json:"level" nullable:"true" doc:"Always null: no meter is of levels."`
	Applied      *string            `json:"applied" doc:"Of usage: minimum or maximum, if the minimum of the price lifted the amount, or the maximum lowered it. Else null."`

	TestClock string `json:"test_clock,omitempty" doc:"Of the preview of an adjustment: the test clock that the customer lives by."`
}

type taxBody struct {
	Name      string `json:"name"`
	Percent   string `json:"percent"`
	BaseMinor int64  `json:"base_minor"`
	TaxMinor  int64  `json:"tax_minor"`
}

// sellerOnPaper is a seller as an invoice names it.
type sellerOnPaper struct {
	Key     string   `json:"key"`
	Name    string   `json:"name"`
	Address []string `json:"address"`
	TaxID   string   `json:"tax_id,omitempty"`
}

func showInvoice(i *billing.Invoice) invoiceBody {
	body := invoiceBody{
		ID: orNull(i.ID), Number: orNull(i.Number), Kind: i.Kind, Customer: i.CustomerKey, TestClock: i.TestClock, Status: i.Status, Currency: i.Currency,
		PeriodStart: timeOf(i.PeriodStart), PeriodEnd: timeOf(i.PeriodEnd), PriceVersion: i.PriceVersion,
		Lines: make([]lineBody, len(i.Lines)), Taxes: make([]taxBody, len(i.Taxes)),
		SubtotalMinor: i.SubtotalMinor, TaxMinor: i.TaxMinor, TotalMinor: i.TotalMinor, CreditsMinor: i.CreditsMinor, AmountDueMinor: i.AmountDueMinor, CreditedMinor: i.CreditedMinor,
		Seller: sellerOnPaper{i.Seller.Key, i.Seller.Name, listed(i.Seller.Address), i.Seller.TaxID}, Buyer: i.Buyer,
		DueAt: instantOrNull(i.DueAt), Held: orNull(i.Held), Of: orNull(i.Of), FinalizedAt: instantOrNull(i.FinalizedAt),
		PaidAt: instantOrNull(i.PaidAt), Reference: orNull(i.Reference), VoidReason: orNull(i.VoidReason), Reason: orNull(i.Reason),
	}
	body.Buyer.Address, body.OpenMinor = listed(body.Buyer.Address), i.OpenMinor()
	if paid, known := i.Paid(); known {
		body.PaidMinor = &paid
	}
	for n := range i.Lines {
		body.Lines[n] = showLine(&i.Lines[n])
	}
	for n, t := range i.Taxes {
		body.Taxes[n] = taxBody{t.Name, t.Percent, t.BaseMinor, t.TaxMinor}
	}
	return body
}

func showLine(l *billing.Line) lineBody {
	return lineBody{
		N: l.N, Kind: l.Kind, Meter: orNull(l.Meter), Description: l.Description, From: timeOf(l.From), To: timeOf(l.To),
		Quantity: l.Quantity, Included: l.Included, PlanVersion: l.PlanVersion, Tiers: listed(l.Tiers), AmountMinor: l.AmountMinor, OfInvoice: orNull(l.Corrects()),
		UnitPrice: orNull(l.UnitPrice), PackageSize: aboveZero(l.PackageSize), PackagePrice: orNull(l.PackagePrice), Applied: orNull(l.Applied),
	}
}

// aboveZero is null for 0.
func aboveZero(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// orNull is null for an empty text.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// listed is an empty list for none, which JSON would show as null.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func instantOrNull(at *int64) *time.Time {
	if at == nil {
		return nil
	}
	t := timeOf(*at)
	return &t
}

func invoiceAnswer(i *billing.Invoice, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: showInvoice(i)}, nil
}

// filter reads which invoices are asked for.
func (q query) filter() (f ledger.Filter, err error) {
	if f.Status = q["status"]; f.Status != "" {
		switch f.Status {
		case billing.StatusDraft, billing.StatusFinalized, billing.StatusPaid, billing.StatusVoid, billing.StatusCredited:
		default:
			return f, problem.Invalid("status", "must be draft, finalized, paid, void or credited")
		}
	}
	f.Customer, f.TestClock = q["customer"], q["test_clock"]
	f.From, f.To, err = q.between()
	return f, err
}

func (s *Server) listInvoices(c *call) (answer, error) {
	f, err := c.query.filter()
	if err != nil {
		return answer{}, err
	}
	list, err := s.billing.Invoices(c.ctx(), f, c.query.page())
	return listAnswer(list, err, showInvoice)
}

func (s *Server) customerInvoices(c *call) (answer, error) {
	key, err := customerInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	list, err := s.billing.Invoices(c.ctx(), ledger.Filter{Customer: key, TestClock: ledger.AnyClock}, c.query.page())
	return listAnswer(list, err, showInvoice)
}

func (s *Server) upcomingInvoice(c *call) (answer, error) {
	key, err := customerInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	project, err := c.query.flag("projection")
	if err != nil {
		return answer{}, err
	}
	if !project {
		return invoiceAnswer(s.billing.Upcoming(c.ctx(), key))
	}
	soFar, projected, err := s.billing.Projection(c.ctx(), key)
	if err != nil {
		return answer{}, err
	}
	body := showInvoice(soFar)
	body.Projection = showProjection(projected)
	return answer{status: http.StatusOK, body: body}, nil
}

func (s *Server) getInvoice(c *call) (answer, error) {
	id, err := pathValue(c.r, "id")
	if err != nil {
		return answer{}, err
	}
	return invoiceAnswer(s.billing.Invoice(c.ctx(), id))
}

func (s *Server) finalizeInvoice(c *call) (answer, error) {
	id, err := pathValue(c.r, "id")
	if err != nil {
		return answer{}, err
	}
	return invoiceAnswer(s.billing.Finalize(c.ctx(), id))
}

type payRequest struct {
	Reference string `json:"reference,omitempty" maxLength:"500" doc:"What the payment is known by, for people."`
}

func (s *Server) payInvoice(c *call) (answer, error) {
	id, err := pathValue(c.r, "id")
	if err != nil {
		return answer{}, err
	}
	var in payRequest
	if err = decode(c.body, &in); err == nil {
		err = wrongText("reference", in.Reference, false)
	}
	if err != nil {
		return answer{}, err
	}
	return invoiceAnswer(s.billing.Pay(c.ctx(), id, in.Reference))
}

type voidRequest struct {
	Reason  string `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for people."`
	Reissue bool   `json:"reissue" required:"false" default:"false" doc:"Makes a new draft of the same period and prices."`
}

func (s *Server) voidInvoice(c *call) (answer, error) {
	id, err := pathValue(c.r, "id")
	if err != nil {
		return answer{}, err
	}
	var in voidRequest
	if err = decode(c.body, &in); err == nil {
		err = wrongText("reason", in.Reason, true)
	}
	if err != nil {
		return answer{}, err
	}
	return invoiceAnswer(s.billing.Void(c.ctx(), id, in.Reason, in.Reissue))
}

type noteRequest struct {
	Lines  []noteLine `json:"lines" minItems:"1"`
	Reason string     `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for people."`
	To     string     `json:"to" enum:"credits,outside" doc:"- credits: the money becomes a credit of the customer. The invoice must be paid.\n- outside: it is paid back elsewhere, or less is owed."`
	ID     string     `json:"id" minLength:"1" maxLength:"255" doc:"The credit note is made once under it. It is the customer's for ever."`
}

type noteLine struct {
	N           int   `json:"n" minimum:"1" doc:"The line of the invoice."`
	AmountMinor int64 `json:"amount_minor" minimum:"1" doc:"As the line's amount: without an exclusive tax."`
}

func (s *Server) creditInvoice(c *call) (answer, error) {
	id, err := pathValue(c.r, "id")
	if err != nil {
		return answer{}, err
	}
	var in noteRequest
	if err = decode(c.body, &in); err == nil {
		err = wrongText("reason", in.Reason, true)
	}
	if err != nil {
		return answer{}, err
	}
	if wrong := checkID(in.ID); wrong != "" {
		return answer{}, problem.Invalid("id", wrong)
	}
	asked := assembly.NoteRequest{Reason: in.Reason, To: in.To}
	payload := []string{id, in.Reason, in.To}
	for _, l := range in.Lines {
		asked.Lines = append(asked.Lines, assembly.NoteLine{N: l.N, AmountMinor: l.AmountMinor})
		payload = append(payload, strconv.Itoa(l.N), strconv.FormatInt(l.AmountMinor, 10))
	}
	note, replayed, err := s.billing.CreditNote(c.ctx(), id, asked, in.ID, model.NewID("credit note", in.ID, payload...).Payload)
	a, err := invoiceAnswer(note, err)
	if err == nil {
		a.status = putStatus(!replayed)
	}
	return a, err
}

type lineUsageBody struct {
	Hours       []lineHour       `json:"hours"`
	Adjustments []lineAdjustment `json:"adjustments"`
	NextCursor  *string          `json:"next_cursor" doc:"Hours come first, and then adjustments. Null when these are the last ones: then all pages together add up to the line's quantity."`
}

type lineHour struct {
	Start    time.Time `json:"start"`
	Admitted int64     `json:"admitted"`
}

type lineAdjustment struct {
	Hour   time.Time `json:"hour" doc:"The start of the hour that it concerns."`
	At     time.Time `json:"at" doc:"When it was made."`
	Cost   int64     `json:"cost"`
	Reason string    `json:"reason"`
}

func (s *Server) invoiceLineUsage(c *call) (answer, error) {
	id, err := pathValue(c.r, "id")
	if err != nil {
		return answer{}, err
	}
	text, err := pathValue(c.r, "n")
	if err != nil {
		return answer{}, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return answer{}, billing.ErrUnknownLine
	}
	found, err := s.billing.LineUsage(c.ctx(), id, n, c.query.page())
	if err != nil {
		return answer{}, err
	}
	body := lineUsageBody{
		Hours: make([]lineHour, len(found.Hours)), Adjustments: make([]lineAdjustment, len(found.Adjustments)), NextCursor: orNull(found.Next),
	}
	for i, h := range found.Hours {
		body.Hours[i] = lineHour{timeOf(h.Start), h.Admitted}
	}
	for i, a := range found.Adjustments {
		body.Adjustments[i] = lineAdjustment{timeOf(a.Hour), timeOf(a.At), a.Cost, a.Reason}
	}
	return answer{status: http.StatusOK, body: body}, nil
}
