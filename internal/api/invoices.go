package api

import (
	"net/http"
	"strconv"
	"time"

	"quotad/client"
	"quotad/internal/api/problem"
	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/invoices"
	"quotad/internal/quota/model"
)

// showProjection is nil for nil.
func showProjection(i *billing.Invoice) *client.Projection {
	if i == nil {
		return nil
	}
	shown := showInvoice(i)
	return &client.Projection{
		Lines: shown.Lines, SubtotalMinor: shown.SubtotalMinor, Taxes: shown.Taxes, TaxMinor: shown.TaxMinor, TotalMinor: shown.TotalMinor, CreditsMinor: shown.CreditsMinor, AmountDueMinor: shown.AmountDueMinor,
	}
}

func showInvoice(i *billing.Invoice) client.Invoice {
	body := client.Invoice{
		ID: orNull(i.ID), Number: orNull(i.Number), Kind: i.Kind, Customer: i.CustomerKey, TestClock: i.TestClock, Status: i.Status, Currency: i.Currency,
		PeriodStart: timeOf(i.PeriodStart), PeriodEnd: timeOf(i.PeriodEnd), PriceVersion: i.PriceVersion,
		Lines: make([]client.Line, len(i.Lines)), Taxes: make([]client.Tax, len(i.Taxes)),
		SubtotalMinor: i.SubtotalMinor, TaxMinor: i.TaxMinor, TotalMinor: i.TotalMinor, CreditsMinor: i.CreditsMinor, AmountDueMinor: i.AmountDueMinor, CreditedMinor: i.CreditedMinor,
		Seller: client.SellerOnPaper{Key: i.Seller.Key, Name: i.Seller.Name, Address: listed(i.Seller.Address), TaxID: i.Seller.TaxID}, Buyer: i.Buyer,
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
		body.Taxes[n] = client.Tax{Name: t.Name, Percent: t.Percent, BaseMinor: t.BaseMinor, TaxMinor: t.TaxMinor}
	}
	return body
}

func showLine(l *billing.Line) client.Line {
	return client.Line{
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
func (q query) filter() (f invoices.Filter, err error) {
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
	list, err := s.invoices.Invoices(c.ctx(), f, c.query.page())
	return listAnswer(list, err, showInvoice)
}

func (s *Server) customerInvoices(c *call) (answer, error) {
	key, err := customerInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	list, err := s.invoices.Invoices(c.ctx(), invoices.Filter{Customer: key, TestClock: invoices.AnyClock}, c.query.page())
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
		return invoiceAnswer(s.invoices.Upcoming(c.ctx(), key))
	}
	soFar, projected, err := s.invoices.Projection(c.ctx(), key)
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
	return invoiceAnswer(s.invoices.Invoice(c.ctx(), id))
}

func (s *Server) finalizeInvoice(c *call) (answer, error) {
	id, err := pathValue(c.r, "id")
	if err != nil {
		return answer{}, err
	}
	return invoiceAnswer(s.invoices.Finalize(c.ctx(), id))
}

func (s *Server) payInvoice(c *call) (answer, error) {
	id, err := pathValue(c.r, "id")
	if err != nil {
		return answer{}, err
	}
	var in client.PayRequest
	if err = decode(c.body, &in); err == nil {
		err = wrongText("reference", in.Reference, false)
	}
	if err != nil {
		return answer{}, err
	}
	return invoiceAnswer(s.invoices.Pay(c.ctx(), id, in.Reference))
}

func (s *Server) voidInvoice(c *call) (answer, error) {
	id, err := pathValue(c.r, "id")
	if err != nil {
		return answer{}, err
	}
	var in client.VoidRequest
	if err = decode(c.body, &in); err == nil {
		err = wrongText("reason", in.Reason, true)
	}
	if err != nil {
		return answer{}, err
	}
	return invoiceAnswer(s.invoices.Void(c.ctx(), id, in.Reason, in.Reissue))
}

func (s *Server) creditInvoice(c *call) (answer, error) {
	id, err := pathValue(c.r, "id")
	if err != nil {
		return answer{}, err
	}
	var in client.NoteRequest
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
	note, replayed, err := s.invoices.CreditNote(c.ctx(), id, asked, in.ID, model.NewID("credit note", in.ID, payload...).Payload)
	a, err := invoiceAnswer(note, err)
	if err == nil {
		a.status = putStatus(!replayed)
	}
	return a, err
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
	found, err := s.invoices.LineUsage(c.ctx(), id, n, c.query.page())
	if err != nil {
		return answer{}, err
	}
	body := client.LineUsage{
		Hours: make([]client.LineHour, len(found.Hours)), Adjustments: make([]client.LineAdjustment, len(found.Adjustments)), NextCursor: orNull(found.Next),
	}
	for i, h := range found.Hours {
		body.Hours[i] = client.LineHour{Start: timeOf(h.Start), Admitted: h.Admitted}
	}
	for i, a := range found.Adjustments {
		body.Adjustments[i] = client.LineAdjustment{Hour: timeOf(a.Hour), At: timeOf(a.At), Cost: a.Cost, Reason: a.Reason}
	}
	return answer{status: http.StatusOK, body: body}, nil
}
