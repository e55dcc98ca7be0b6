package portal

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"quotad/client"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
	"quotad/internal/web/words"
)

// The portal shows an invoice only after the API has confirmed that the invoice belongs to the session's
// customer.

// billRow is an invoice in the list.
type billRow struct {
	Number, Kind, Period, Total, Amount, URL, Status, Class string
	Due                                                     string // open amount and its due date, if any
}

type billsData struct {
	Rows []billRow
	Next string
}

// billStates maps the states of invoices to the portal's text and CSS class.
var billStates = map[string]struct{ text, class string }{
	"draft": {"Draft", ""}, "finalized": {"To be paid", "high"}, "paid": {"Paid", "good"},
	"void": {"Void", ""}, "credited": {"Credited", ""},
}

var billKinds = map[string]string{"period": "Invoice", "opening": "First invoice", "credit_note": "Credit note"}

func (v *visit) bills() (*page.View, error) {
	list, err := v.API.InvoicesOf(v.Ctx(), v.Key, v.Query())
	if err != nil {
		return nil, err
	}
	data := billsData{Next: v.Next(list.NextCursor)}
	for i := range list.Items {
		data.Rows = append(data.Rows, v.billRow(&list.Items[i]))
	}
	return &page.View{Sheet: "bills", Title: "Invoices", Tab: "invoices", Data: data}, nil
}

func (v *visit) billRow(i *client.Invoice) billRow {
	state := billStates[i.Status]
	row := billRow{
		Number: "Draft", Kind: billKinds[i.Kind], Period: words.Span(i.PeriodStart, i.PeriodEnd, v.Zone),
		Total: words.Money(i.TotalMinor, i.Currency), Amount: parts.Rest(i).Text, Status: state.text, Class: state.class,
	}
	switch {
	case parts.IsNote(i):
		row.Status, row.Class = "Given back", ""
	case i.Overdue:
		row.Status, row.Class = "Overdue", "bad"
	case i.Status == "paid" && i.PaidAt == nil:
		row.Status, row.Class = "Settled", "good"
	}
	if i.OpenMinor > 0 && i.DueAt != nil {
		row.Due = words.Money(i.OpenMinor, i.Currency) + " by " + i.DueAt.In(v.Zone).Format("2 Jan 2006")
	}
	if i.Number != nil {
		row.Number = *i.Number
	}
	if i.ID != nil {
		row.URL = "/portal/invoices/" + page.Segment(*i.ID)
	}
	return row
}

// billData is the data of the page of one invoice.
type billData struct {
	billRow
	Lines  []billLine
	Totals []parts.CostLine
	Sum    parts.CostLine
	Says   string      // label of the amount: due, credited or paid
	Of     *page.Link  // link from a credit note to the credited invoice
	Reason string      // reason of a credit note
	Notes  []page.Link // links to the invoice's credit notes
	Page   string      // addresses of the printable page, the PDF and the CSV
	PDF    string
	CSV    string
}

type billLine struct {
	parts.CostLine
	Prices        []string // explanation of a usage line's amount
	Period, Hours string   // the line's own period, if it differs; address of its hours
}

// ownInvoice returns the invoice with the id. The error is page.ErrMissing if the invoice belongs to another
// customer.
func (v *visit) ownInvoice(id string) (*client.Invoice, error) {
	i, err := v.API.Invoice(v.Ctx(), id)
	if err != nil {
		return nil, err
	}
	if i.Customer != v.Customer.Key {
		return nil, page.ErrMissing
	}
	return &i, nil
}

func (v *visit) bill() (*page.View, error) {
	i, err := v.ownInvoice(v.R.PathValue("id"))
	if err != nil {
		return nil, err
	}
	data := billData{billRow: v.billRow(i)}
	at := "/portal/invoices/file/" + page.Segment(*i.ID)
	data.Page, data.PDF, data.CSV = at+".html", at+".pdf", at+".csv"
	for _, l := range i.Lines {
		line := billLine{CostLine: parts.LineOf(&l, i.Currency), Prices: parts.PricesOf(&l, i.Currency)}
		if !l.From.Equal(i.PeriodStart) || !l.To.Equal(i.PeriodEnd) {
			line.Period = words.Span(l.From, l.To, v.Zone)
		}
		if l.Kind == "usage" || l.Kind == "correction" {
			line.Hours = data.URL + "/lines/" + strconv.Itoa(l.N)
		}
		data.Lines = append(data.Lines, line)
	}
	add := func(name, how string, minor int64) {
		data.Totals = append(data.Totals, parts.CostLine{Name: name, How: how, Amount: words.Money(minor, i.Currency)})
	}
	if len(i.Taxes) > 0 {
		add("Subtotal", "", i.SubtotalMinor)
	}
	for _, t := range i.Taxes {
		add(t.Name, t.Percent+" %", t.TaxMinor)
	}
	if all := parts.Settled(i, v.Zone); len(all) > 0 {
		add("Total", "", i.TotalMinor)
		for _, f := range all {
			data.Totals = append(data.Totals, parts.CostLine{Name: f.Term, Amount: f.Text})
		}
	}
	left := parts.Rest(i)
	data.Sum, data.Says = parts.CostLine{Name: left.Term, Amount: left.Text}, left.Term
	switch {
	case i.Status == "paid" && !parts.IsNote(i):
		data.Says = parts.PaidOn(i, v.Zone)
		data.Amount = words.Money(i.PaidMinor, i.Currency)
	case i.OpenMinor > 0 && i.DueAt != nil:
		data.Says = "Due by " + i.DueAt.In(v.Zone).Format("2 January 2006")
	}
	if err := v.notes(i, &data); err != nil {
		return nil, err
	}
	return &page.View{Sheet: "bill", Title: data.Kind + " " + data.Number, Tab: "invoices", Data: data}, nil
}

// notes adds links from a credit note to its invoice, or from an invoice to its credit notes. Both have the same
// period.
func (v *visit) notes(i *client.Invoice, data *billData) error {
	switch {
	case parts.IsNote(i) && i.Of != nil:
		of, err := v.ownInvoice(*i.Of)
		if err != nil {
			return err
		}
		row := v.billRow(of)
		data.Of = &page.Link{Text: row.Number, URL: row.URL}
		if i.Reason != nil {
			data.Reason = *i.Reason
		}
	case i.CreditedMinor != 0:
		query := url.Values{"customer": {i.Customer}, "test_clock": {"any"}, "limit": {"1000"}}
		query.Set("from", i.PeriodEnd.Format(time.RFC3339Nano))
		query.Set("to", i.PeriodEnd.Add(time.Microsecond).Format(time.RFC3339Nano))
		list, err := v.API.Invoices(v.Ctx(), query)
		if err != nil {
			return err
		}
		for n := range list.Items {
			if note := &list.Items[n]; parts.IsNote(note) && note.Of != nil && *note.Of == *i.ID {
				row := v.billRow(note)
				data.Notes = append(data.Notes, page.Link{Text: row.Kind + " " + row.Number + ": " + row.Amount, URL: row.URL})
			}
		}
	}
	return nil
}

// billFile returns an invoice document that the API rendered.
func (v *visit) billFile() (*page.View, error) {
	id, _, _ := strings.Cut(v.R.PathValue("file"), ".")
	if _, err := v.ownInvoice(id); err != nil {
		return nil, err
	}
	return parts.Paper(v.Visit)
}

// hoursData contains the hours and adjustments that add up to an invoice line.
type hoursData struct {
	Back, Invoice, Line string
	Hours               []hourRow
	Adjustments         []hourRow
	Sum                 string
	Archived            bool
	Left                int // number of omitted hours, which the usage page's CSV contains
}

type hourRow struct{ When, Units, Why string }

// maxHourRows is the maximum number of hours on the page. A month has fewer hours. For a line of a year, the
// page shows the first hours.
const maxHourRows = 1000

func (v *visit) billHours() (*page.View, error) {
	i, err := v.ownInvoice(v.R.PathValue("id"))
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(v.R.PathValue("n"))
	if err != nil || n < 1 || n > len(i.Lines) {
		return nil, page.ErrMissing
	}
	used, err := v.API.LineUsage(v.Ctx(), *i.ID, n, nil)
	told, refused := page.ProblemOf(err)
	archived := refused && strings.HasSuffix(told.Type, "/archived")
	if err != nil && !archived {
		return nil, err
	}
	row := v.billRow(i)
	data := hoursData{
		Archived: archived, Back: row.URL, Invoice: row.Kind + " " + row.Number, Line: parts.LineOf(&i.Lines[n-1], i.Currency).Name,
		Sum: words.Number(i.Lines[n-1].Quantity),
	}
	for at, h := range used.Hours {
		if at == maxHourRows {
			data.Left = len(used.Hours) - at
			break
		}
		data.Hours = append(data.Hours, hourRow{h.Start.In(v.Zone).Format("Mon 2 Jan 2006, 15:04"), words.Number(h.Admitted), ""})
	}
	for _, a := range used.Adjustments {
		data.Adjustments = append(data.Adjustments, hourRow{a.Hour.In(v.Zone).Format("Mon 2 Jan 2006, 15:04"), words.Number(a.Cost), a.Reason})
	}
	return &page.View{Sheet: "hours", Title: data.Line, Tab: "invoices", Data: data}, nil
}
