package admin

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"quotad/client"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
	"quotad/internal/web/words"
)

var statuses = []option{
	{"", "any"},
	{"draft", "draft"},
	{"finalized", "finalized"},
	{"paid", "paid"},
	{"void", "void"},
	{"credited", "credited"},
	{"overdue", "overdue"},
}

func (v *visit) invoices() (*page.View, error) {
	query := v.Query("customer", "test_clock", "status", "from", "to")
	list, err := v.API.Invoices(v.Ctx(), query)
	asked := v.R.URL.Query()
	if who := asked.Get("customer"); err == nil && who != "" {
		err = v.setClockOf(who)
	}
	sheet := &staffPage{
		Intro: "Invoices of customers on test clocks are left out, unless you name a clock. With the word any all are there.",
		Search: &search{[]field{
			{Name: "customer", Label: "Customer", Kind: kindText, Value: asked.Get("customer")},
			{Name: "test_clock", Label: "Test clock", Kind: kindText, Value: asked.Get("test_clock")},
			{Name: "status", Label: "Status", Kind: kindSelect, Value: asked.Get("status"), Options: statuses},
			{Name: "from", Label: "From", Kind: kindText, Value: asked.Get("from")},
			{Name: "to", Label: "To", Kind: kindText, Value: asked.Get("to")},
		}},
	}
	if err != nil {
		return v.refusedSearch(sheet, err, "Invoices", "invoices")
	}
	sheet.Sections = []section{{
		Table: v.invoiceTable(list.Items, v.Next(list.NextCursor)),
		Links: []page.Link{{Text: "As CSV", URL: "/admin/invoices.csv?" + query.Encode()}},
	}}
	return sheet.shownAs("Invoices", "invoices"), nil
}

func (v *visit) invoiceTable(all []client.Invoice, next string) *table {
	t := &table{Caption: "Invoices", Head: []column{
		{Text: "Number"},
		{Text: "Customer"},
		{Text: "Status"},
		{Text: "Period"},
		{Text: "Total", Numeric: true},
		{Text: "Open", Numeric: true},
	}, Empty: "There is no invoice", Next: next}
	for i := range all {
		n := &all[i]
		t.Rows = append(t.Rows, []cell{
			{Text: numberOf(n), URL: "/admin/invoices/" + page.Segment(*n.ID), Sub: kindOf(n)},
			linked(n.Customer, "/admin/customers/"+page.Segment(n.Customer)), statusCell(n),
			text(words.Span(n.PeriodStart, n.PeriodEnd, v.Zone)), amount(words.Money(n.TotalMinor, n.Currency)), amount(words.Money(n.OpenMinor, n.Currency)),
		})
	}
	return t
}

func numberOf(n *client.Invoice) string {
	if n.Number == nil {
		return "Draft"
	}
	return *n.Number
}

func kindOf(n *client.Invoice) string { return strings.ReplaceAll(n.Kind, "_", " ") }

func statusCell(n *client.Invoice) cell {
	if n.Overdue {
		return marked("bad", "overdue")
	}
	class := map[string]string{"paid": "good", "finalized": "accent", "draft": "high"}[n.Status]
	return marked(class, n.Status)
}

func (v *visit) invoice() (*page.View, error) { return v.invoicePage(nil) }

func (v *visit) invoicePath() string { return "/v1/invoices/" + page.Segment(v.R.PathValue("id")) }
func (v *visit) invoiceURL() string {
	return "/admin/invoices/" + page.Segment(v.R.PathValue("id"))
}

func (v *visit) invoicePage(back *form) (*page.View, error) {
	n, err := v.API.Invoice(v.Ctx(), v.R.PathValue("id"))
	if err == nil {
		err = v.setClockOf(n.Customer)
	}
	if err != nil {
		return nil, err
	}
	sheet := &staffPage{
		Crumbs: []page.Link{{Text: "Invoices", URL: "/admin/invoices"}, {Text: n.Customer, URL: "/admin/customers/" + page.Segment(n.Customer) + "/billing"}},
		Chips:  []parts.Chip{*statusCell(&n).Chip, {Class: "", Text: kindOf(&n)}}, Done: v.doneHere(),
		Intro: words.Span(n.PeriodStart, n.PeriodEnd, v.Zone),
	}
	sheet.Sections = []section{
		{Title: "Lines", Table: v.lineTable(&n)},
		{Title: "Sum", Facts: sums(&n, v.Zone), Links: papers(v.R.PathValue("id"))},
	}
	if len(n.Payments)+len(n.Reversed) > 0 {
		sheet.Sections = append(sheet.Sections, section{Title: "Payments", Table: paymentTable(&n, v.Zone)})
	}
	if v.isAdmin() {
		if forms := with(v.invoiceForms(&n), back); len(forms) > 0 {
			sheet.Sections = append(sheet.Sections, section{Title: "What comes next", Forms: forms})
		}
	}
	title := "Invoice " + numberOf(&n)
	if n.Number == nil {
		title = "Draft invoice"
	}
	return sheet.shownAs(title, "invoices"), nil
}

// lineTable returns the table of an invoice's lines.
func (v *visit) lineTable(n *client.Invoice) *table {
	t := &table{Caption: "Lines", Head: []column{
		{Text: "Line"},
		{Text: "From – to"},
		{Text: "Quantity", Numeric: true},
		{Text: "Amount", Numeric: true},
	}, Empty: "It has no line"}
	for i := range n.Lines {
		l := &n.Lines[i]
		t.Rows = append(t.Rows, []cell{
			{Text: l.Description, Sub: strings.Join(append([]string{l.Kind}, parts.PricesOf(l, n.Currency)...), " · ")},
			text(words.Span(l.From, l.To, v.Zone)), amount(words.Number(l.Quantity)), amount(words.Money(l.AmountMinor, n.Currency)),
		})
	}
	return t
}

// papers returns links to the files of an invoice.
func papers(id string) []page.Link {
	file := "/admin/invoices/file/" + page.Segment(id)
	return []page.Link{{Text: "As a page to print", URL: file + ".html"}, {Text: "PDF", URL: file + ".pdf"}, {Text: "CSV", URL: file + ".csv"}}
}

func sums(n *client.Invoice, zone *time.Location) []parts.Fact {
	facts := []parts.Fact{{Term: "Subtotal", Text: words.Money(n.SubtotalMinor, n.Currency)}}
	for _, t := range n.Taxes {
		facts = append(facts, parts.Fact{Term: t.Name + " " + t.Percent + " %", Text: words.Money(t.TaxMinor, n.Currency)})
	}
	facts = append(facts, parts.Fact{Term: "Total", Text: words.Money(n.TotalMinor, n.Currency)})
	facts = append(append(facts, parts.Settled(n, zone)...), parts.Rest(n))
	if n.OpenMinor > 0 && n.DueAt != nil {
		facts = append(facts, parts.Fact{Term: "Due by", Text: n.DueAt.In(zone).Format("2 January 2006")})
	}
	if n.Held != nil {
		facts = append(facts, parts.Fact{Term: "Held back", Text: *n.Held})
	}
	return facts
}

// invoiceForms returns the forms that are possible for the invoice's status.
func (v *visit) invoiceForms(n *client.Invoice) []*form {
	here := v.invoiceURL()
	var all []*form
	if n.Status == "draft" {
		all = append(all, &form{
			Name: "finalize", Action: here + "/finalize", Button: "Finalize now", Class: "primary",
			Ask: "It gets its number, and stands: afterwards it is corrected by credit notes, or voided.", Sure: "Yes, finalize it",
		})
	}
	if n.Status == "finalized" {
		all = append(all, payForm(here, n.Currency), applyForm(here))
	}
	if len(n.Payments) > 0 {
		all = append(all, reverseForm(here, n))
	}
	if voidable(n) {
		all = append(all, voidForm(here))
	}
	if n.Kind != "credit_note" && (n.Status == "finalized" || n.Status == "paid") {
		all = append(all, noteForm(here, n))
	}
	return all
}

func voidForm(here string) *form {
	return &form{
		Name: "void", Title: "Void it", Action: here + "/void", Button: "Yes, void it", Class: "danger",
		Note: "This cannot be undone. The number stays used. Without a reissue the period is written off.", Fields: []field{
			{Name: "reason", Label: "Reason", Kind: kindText}, {Name: "reissue", Label: "Make a new draft of the same period", Kind: kindCheck},
		},
	}
}

func noteForm(here string, n *client.Invoice) *form {
	f := &form{Name: "note", Title: "Credit note", Action: here + "/credit-notes", Button: "Make the credit note", Fields: []field{once()}}
	for _, l := range n.Lines {
		if l.AmountMinor > 0 {
			f.Fields = append(f.Fields, field{
				Name: "line-" + strconv.Itoa(l.N), Label: l.Description, Kind: kindMoney, Currency: n.Currency, Optional: true,
				Help: "Of " + words.Money(l.AmountMinor, n.Currency),
			})
		}
	}
	to := []option{{"outside", "paid back outside, or owed less"}, {"credits", "as a credit for later invoices, or owed less"}}
	f.Fields = append(f.Fields, field{Name: "reason", Label: "Reason", Kind: kindText}, field{Name: "to", Label: "Given back", Kind: kindSelect, Options: to})
	return f
}

func (v *visit) finalizeInvoice() (*page.View, error) {
	return v.press(func() error { return v.API.FinalizeInvoice(v.Ctx(), v.R.PathValue("id")) }, v.invoiceURL()+"?done=finalized")
}

func (v *visit) voidInvoice() (*page.View, error) {
	return v.sent(post{
		form: voidForm(v.invoiceURL()), method: http.MethodPost, path: at(v.invoicePath() + "/void"),
		to: v.invoiceURL() + "?done=voided",
	}, v.invoicePage)
}

// creditInvoice creates a credit note whose lines come from the form's fields, one field for each invoice line.
func (v *visit) creditInvoice() (*page.View, error) {
	n, err := v.API.Invoice(v.Ctx(), v.R.PathValue("id"))
	if err != nil {
		return nil, err
	}
	path := func(members map[string]any) string {
		lines := []client.NoteLine{}
		for _, l := range n.Lines {
			name := "line-" + strconv.Itoa(l.N)
			if minor, ok := members[name].(int64); ok {
				lines = append(lines, client.NoteLine{N: l.N, AmountMinor: minor})
				delete(members, name)
			}
		}
		members["lines"] = lines
		return v.invoicePath() + "/credit-notes"
	}
	return v.sent(post{form: noteForm(v.invoiceURL(), &n), method: http.MethodPost, path: path, to: v.invoiceURL() + "?done=credited"}, v.invoicePage)
}

func (v *visit) invoicesCSV() (*page.View, error) {
	body, err := v.API.InvoicesCSV(v.Ctx(), v.Query("customer", "test_clock", "status", "from", "to"))
	return &page.View{File: &page.File{MediaType: "text/csv; charset=utf-8", Name: "invoices.csv", Body: body}}, err
}
