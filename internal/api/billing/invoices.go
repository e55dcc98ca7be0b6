package billing

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"quotad/client"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/invoices"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// showProjection converts a projection. It returns nil for nil.
func showProjection(i *billing.Invoice) *client.Projection {
	if i == nil {
		return nil
	}
	shown := showInvoice(i)
	return &client.Projection{
		Lines: shown.Lines, SubtotalMinor: shown.SubtotalMinor, Taxes: shown.Taxes, TaxMinor: shown.TaxMinor, TotalMinor: shown.TotalMinor,
		CreditsMinor: shown.CreditsMinor, AmountDueMinor: shown.AmountDueMinor,
	}
}

func showInvoice(i *billing.Invoice) client.Invoice {
	body := client.Invoice{
		ID: respond.OrNull(i.ID), Number: respond.OrNull(i.Number), Kind: i.Kind, Customer: i.CustomerKey, TestClock: i.TestClock, Status: i.Status,
		Currency:    i.Currency,
		PeriodStart: respond.Time(i.PeriodStart), PeriodEnd: respond.Time(i.PeriodEnd), PriceVersion: i.PriceVersion,
		Lines: make([]client.Line, len(i.Lines)), Taxes: make([]client.Tax, len(i.Taxes)),
		SubtotalMinor: i.SubtotalMinor, TaxMinor: i.TaxMinor, TotalMinor: i.TotalMinor, CreditsMinor: i.CreditsMinor, AmountDueMinor: i.AmountDueMinor,
		CreditedMinor: i.CreditedMinor,
		Seller:        onPaper(&i.Seller), Buyer: i.Buyer, OrderReference: i.OrderReference, Notes: i.Notes,
		DueAt: respond.InstantOrNull(i.DueAt), Overdue: i.Overdue, Held: respond.OrNull(i.Held), Of: respond.OrNull(i.Of),
		FinalizedAt: respond.InstantOrNull(i.FinalizedAt),
		PaidAt:      respond.InstantOrNull(i.PaidAt), Reference: respond.OrNull(i.Reference),
		VoidReason: respond.OrNull(i.VoidReason), Reason: respond.OrNull(i.Reason),
	}
	body.Buyer.Address, body.OpenMinor = respond.Listed(body.Buyer.Address), i.OpenMinor()
	body.PaidMinor, body.Payments = i.PaidMinor(), []client.Payment{}
	for n := range i.Payments {
		if p := &i.Payments[n]; p.ReversedAt == nil {
			body.Payments = append(body.Payments, showPayment(p))
		} else {
			body.Reversed = append(body.Reversed, showPayment(p))
		}
	}
	if m := i.Money; m != nil {
		body.Money = &client.NoteMoney{OpenMinor: m.OpenMinor, CreditsMinor: m.CarriedMinor, OutsideMinor: m.OutsideMinor, ReturnedMinor: m.ReturnedMinor}
	}
	for n := range i.Lines {
		body.Lines[n] = showLine(&i.Lines[n])
	}
	for n, t := range i.Taxes {
		body.Taxes[n] = client.Tax{Name: t.Name, Percent: t.Percent, BaseMinor: t.BaseMinor, TaxMinor: t.TaxMinor, Note: t.Note}
	}
	return body
}

func showPayment(p *billing.Payment) client.Payment {
	return client.Payment{
		N: p.N, At: respond.Time(p.At), AmountMinor: p.AmountMinor, Kind: p.Kind, Reference: respond.OrNull(p.Reference),
		ReversedAt: respond.InstantOrNull(p.ReversedAt), Reason: p.Reason,
	}
}

func onPaper(s *billing.Seller) client.SellerOnPaper {
	return client.SellerOnPaper{
		Key: s.Key, Name: s.Name, Address: respond.Listed(s.Address), Country: s.Country, TaxID: s.TaxID,
		Registration: s.Registration, Email: s.Email, Payment: s.Payment, Footer: s.Footer,
	}
}

func showLine(l *billing.Line) client.Line {
	return client.Line{
		N: l.N, Kind: l.Kind, Meter: respond.OrNull(l.Meter), Description: l.Description, From: respond.Time(l.From), To: respond.Time(l.To),
		Quantity: l.Quantity, Included: l.Included, PlanVersion: l.PlanVersion, Tiers: respond.Listed(l.Tiers), AmountMinor: l.AmountMinor,
		OfInvoice: respond.OrNull(l.Corrects()),
		UnitPrice: respond.OrNull(l.UnitPrice), PackageSize: aboveZero(l.PackageSize), PackagePrice: respond.OrNull(l.PackagePrice),
		Applied: respond.OrNull(l.Applied),
		Level:   levelOf(l), Part: shownPart(l), WholeMinor: l.WholeMinor,
		BilledBefore: (*client.BilledBefore)(l.Before),
	}
}

func shownPart(l *billing.Line) *client.Part {
	if l.Part == nil {
		return nil
	}
	return &client.Part{From: respond.Time(l.Part.From), To: respond.Time(l.Part.To), OfFrom: respond.Time(l.Part.OfFrom), OfTo: respond.Time(l.Part.OfTo)}
}

func levelOf(l *billing.Line) *client.LineLevel {
	if l.Level.By == "" {
		return nil
	}
	return &client.LineLevel{By: l.Level.By, Exact: l.Level.Exact}
}

// aboveZero returns n, or nil (null in JSON) for 0.
func aboveZero(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// filterOf reads the filter of invoices from a query.
func filterOf(q request.Query) (f invoices.Filter, err error) {
	if text, given := q["status"]; given {
		switch f.Status = text; text {
		case billing.StatusDraft, billing.StatusFinalized, billing.StatusPaid, billing.StatusVoid, billing.StatusCredited, billing.StatusOverdue:
		default:
			return f, problem.Invalid("status", "must be draft, finalized, paid, void, credited or overdue")
		}
	}
	f.Customer, f.TestClock = q["customer"], q["test_clock"]
	for _, name := range []string{"customer", "test_clock"} {
		if text, given := q[name]; given && text == "" {
			return f, problem.Invalid(name, "must be a key: leave the parameter out instead")
		}
	}
	f.From, f.To, err = q.Between()
	return f, err
}

func (s *Room) listInvoices(c *serve.Call) (*plans.List[*billing.Invoice], error) {
	f, err := filterOf(c.Query)
	if err != nil {
		return nil, err
	}
	return s.Invoices.Invoices(c.Ctx(), f, c.Query.Page())
}

func (s *Room) customerInvoices(c *serve.Call) (*plans.List[*billing.Invoice], error) {
	return s.Invoices.Invoices(c.Ctx(), invoices.Filter{Customer: c.Key, TestClock: invoices.AnyClock}, c.Query.Page())
}

func (s *Room) upcomingInvoice(c *serve.Call) (body client.Invoice, err error) {
	var soFar, projected *billing.Invoice
	if c.Flag("projection") {
		soFar, projected, err = s.Invoices.Projection(c.Ctx(), c.Key, func(ctx context.Context, tx pgx.Tx, end int64) (map[string]int64, error) {
			return s.Left(ctx, tx, c.Key, end)
		})
	} else {
		soFar, err = s.Invoices.Upcoming(c.Ctx(), c.Key)
	}
	if err == nil {
		body = showInvoice(soFar)
		body.Projection = showProjection(projected)
	}
	return body, err
}

func (s *Room) getInvoice(c *serve.Call) (*billing.Invoice, error) {
	return s.Invoices.Invoice(c.Ctx(), c.ID)
}

func (s *Room) finalizeInvoice(c *serve.Call) (*billing.Invoice, error) {
	return s.Invoices.Finalize(c.Ctx(), c.ID)
}

func (s *Room) voidInvoice(c *serve.Call, in client.VoidRequest) (*billing.Invoice, error) {
	if err := request.WrongText("reason", &in.Reason); err != nil {
		return nil, err
	}
	return s.Invoices.Void(c.Ctx(), c.ID, in.Reason, in.Reissue)
}

func (s *Room) creditInvoice(c *serve.Call, in client.NoteRequest) (note *billing.Invoice, replayed bool, err error) {
	if err = request.WrongText("reason", &in.Reason); err != nil {
		return nil, false, err
	}
	if wrong := request.CheckID(in.ID); wrong != "" {
		return nil, false, problem.Invalid("id", wrong)
	}
	asked := assembly.NoteRequest{Reason: in.Reason, To: in.To}
	payload := []string{c.ID, in.Reason, in.To}
	for _, l := range in.Lines {
		asked.Lines = append(asked.Lines, assembly.NoteLine{N: l.N, AmountMinor: l.AmountMinor})
		payload = append(payload, strconv.Itoa(l.N), strconv.FormatInt(l.AmountMinor, 10))
	}
	return s.Invoices.CreditNote(c.Ctx(), c.ID, asked, in.ID, model.NewID("credit note", in.ID, payload...).Payload)
}

func (s *Room) lineUsage(c *serve.Call) (invoices.LineUsage, error) {
	return s.Invoices.LineUsage(c.Ctx(), c.ID, c.N, c.Query.Page())
}

func showLineUsage(of invoices.LineUsage) client.LineUsage {
	body := client.LineUsage{
		Hours: make([]client.LineHour, len(of.Hours)), Adjustments: make([]client.LineAdjustment, len(of.Adjustments)), NextCursor: respond.OrNull(of.Next),
	}
	for i, h := range of.Hours {
		body.Hours[i] = client.LineHour{Start: respond.Time(h.Start), Admitted: h.Admitted}
	}
	for i := range of.Days {
		body.Points = append(body.Points, respond.LevelPoint(of.Days[i], &of.Levels[i]))
	}
	for i, a := range of.Adjustments {
		body.Adjustments[i] = client.LineAdjustment{Hour: respond.Time(a.Hour), At: respond.Time(a.At), Cost: a.Cost, Reason: a.Reason}
	}
	return body
}
