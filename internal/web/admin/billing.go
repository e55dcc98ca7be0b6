package admin

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"quotad/client"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
	"quotad/internal/web/words"
)

func (v *visit) customerBilling() (*page.View, error) { return v.billingPage(nil) }

// billingPage shows a customer's billing. A section that cannot be read fails alone. back is a form with errors,
// or nil.
func (v *visit) billingPage(back *form) (*page.View, error) {
	s, err := v.subject()
	if err != nil {
		return nil, err
	}
	sheet := v.page(s, "/billing")
	account, err := v.API.Account(v.Ctx(), v.Key)
	if problem, asked := page.ProblemOf(err); asked && problem.Status < http.StatusInternalServerError {
		sheet.Sections = []section{{Title: "Billing", Note: problem.Detail}}
		return sheet.shownAs(s.title(), "customers"), nil
	}
	if err != nil {
		return nil, err
	}
	sheet.Sections = v.together(v.costSection, func() section { return v.capSection(s, account.Currency, back) },
		func() section { return v.accountSection(&account) }, v.creditSection, v.customerInvoices)
	if back != nil && back.Name == "cap" {
		back = nil // its section shows the form already
	}
	if v.isAdmin() && s.ArchivedAt == nil {
		sheet.Sections = append(sheet.Sections, section{Title: "Credit, charge or correct", Forms: with(v.bookings(s, account.Currency), back)})
	}
	return sheet.shownAs(s.title(), "customers"), nil
}

// together makes sections concurrently.
func (v *visit) together(sections ...func() section) []section {
	made := make([]section, len(sections))
	var all sync.WaitGroup
	for i, one := range sections {
		v.Beside(&all, "a section", func() error {
			made[i] = one()
			return nil
		}, func() { made[i] = section{Failed: "This part could not be shown just now."} })
	}
	all.Wait()
	return made
}

func (v *visit) costSection() section {
	cost, err := parts.CostOf(v.Visit)
	if err != nil {
		v.Note("the cost", err)
		return section{Title: "This period", Failed: "The cost could not be read just now."}
	}
	return section{Title: "This period", Note: cost.Period, Cost: cost}
}

func (v *visit) accountSection(a *client.Account) section {
	facts := []parts.Fact{
		{Term: "Billed since", Text: v.instant(&a.StartsAt).Text},
		{Term: "Billed until", Text: v.instant(a.BilledUntil).Text},
		{Term: "Trial ends", Text: v.instant(a.TrialEndsAt).Text},
		{Term: "Billing ends", Text: v.instant(a.EndsAt).Text},
		{Term: "Currency", Text: a.Currency},
		{Term: "Seller", Text: a.Seller},
		{Term: "Due after", Text: words.Number(int64(a.DueDays)) + " days"},
	}
	if a.Buyer.Name != "" {
		facts = append(facts, parts.Fact{Term: "Buyer", Text: strings.Join(slices.Concat([]string{a.Buyer.Name}, a.Buyer.Address, []string{a.Buyer.Country}), ", ")})
	}
	if a.OrderReference != "" {
		facts = append(facts, parts.Fact{Term: "Order reference", Text: a.OrderReference})
	}
	if len(a.Notes) > 0 {
		facts = append(facts, parts.Fact{Term: "Notes on papers", Text: strings.Join(a.Notes, " · ")})
	}
	for _, w := range a.Warnings {
		facts = append(facts, parts.Fact{Term: "Warning", Text: w.Detail})
	}
	return section{Title: "Account", Facts: facts}
}

func (v *visit) creditSection() section {
	credits, err := v.API.Credits(v.Ctx(), v.Key, nil)
	if err != nil {
		v.Note("the credits", err)
		return section{Title: "Credits", Failed: "The credits could not be read just now."}
	}
	t := &table{Caption: "Credits", Head: []column{
		{Text: "Credit"},
		{Text: "Kind"},
		{Text: "Left", Numeric: true},
		{Text: "Of", Numeric: true},
		{Text: "Expires"},
	}, Empty: "There is no credit"}
	for i := range credits.Balances {
		b := &credits.Balances[i]
		t.Rows = append(t.Rows, []cell{
			text(b.ID), text(b.Kind), amount(words.Money(b.LeftMinor, b.Currency)),
			amount(words.Money(b.AmountMinor, b.Currency)), v.instant(b.ExpiresAt),
		})
	}
	return section{Title: "Credits", Table: t}
}

func (v *visit) customerInvoices() section {
	list, err := v.API.InvoicesOf(v.Ctx(), v.Key, v.Query())
	if err != nil {
		v.Note("the invoices", err)
		return section{Title: "Invoices", Failed: "The invoices could not be read just now."}
	}
	return section{Title: "Invoices", Table: v.invoiceTable(list.Items, v.Next(list.NextCursor))}
}

// bookings returns the forms that record credits, charges and adjustments.
func (v *visit) bookings(s *subject, currency string) []*form {
	return []*form{creditForm(s, currency), withdrawForm(s, currency), chargeForm(s, currency), adjustmentForm(s)}
}

func creditForm(s *subject, currency string) *form {
	return &form{
		Name: "credit", Title: "Grant a credit", Action: s.here("/credits"), Button: "Grant", Class: "primary",
		Note: "Credits pay invoices when these are finalized.", Fields: []field{
			once(),
			{Name: "amount_minor", Label: "Amount, " + currency, Kind: kindMoney, Currency: currency},
			{Name: "kind", Label: "Kind", Kind: kindSelect, Value: "promotional", Options: []option{{"promotional", "promotional"}, {"paid", "paid"}}},
			{Name: "priority", Label: "Priority, 0 first", Kind: kindNumber, Optional: true, Help: "0 to 100; 50 without one."},
			instantField("expires_at", "Expires", s.zone),
		},
	}
}

func chargeForm(s *subject, currency string) *form {
	return &form{
		Name: "charge", Title: "Charge once", Action: s.here("/charges"), Button: "Charge", Class: "primary",
		Note: "A line of the next invoice. An amount below 0 is a discount.", Fields: []field{
			once(), {Name: "description", Label: "What for", Kind: kindText}, {Name: "amount_minor", Label: "Amount, " + currency, Kind: kindMoney, Currency: currency},
		},
	}
}

func adjustmentForm(s *subject) *form {
	at := instantField("at", "Instant that it concerns", s.zone)
	at.Help = "Now without one."
	return &form{
		Name: "adjustment", Title: "Adjust usage", Action: s.here("/adjustments"), Button: "Adjust", Class: "primary",
		Note: "It changes what is billed, and moves no limit but a cap.", Fields: []field{
			once(),
			{Name: "meter", Label: "Meter", Kind: kindText, Help: "Its key."},
			{Name: "cost", Label: "Units", Kind: kindNumber, Help: "Below 0 takes units off."},
			at,
			{Name: "reason", Label: "Reason", Kind: kindText},
		},
	}
}

// book submits one of the billing forms.
func (v *visit) book(path string, make func(*subject, string) *form) (*page.View, error) {
	s, err := v.subject()
	if err != nil {
		return nil, err
	}
	account, err := v.API.Account(v.Ctx(), v.Key)
	if err != nil {
		return nil, err
	}
	p := post{form: make(s, account.Currency), method: http.MethodPost, path: at(v.Of(path)), to: s.here("/billing?done=booked")}
	if path != "/adjustments" {
		p.add = map[string]any{"currency": account.Currency}
	}
	return v.sent(p, v.billingPage)
}

func (v *visit) grantCredit() (*page.View, error) { return v.book("/credits", creditForm) }
func (v *visit) chargeOnce() (*page.View, error)  { return v.book("/charges", chargeForm) }

func (v *visit) adjustUsage() (*page.View, error) {
	return v.book("/adjustments", func(s *subject, _ string) *form { return adjustmentForm(s) })
}
