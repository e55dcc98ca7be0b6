package admin

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"quotad/client"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
	"quotad/internal/web/words"
)

// paymentTable returns the table of an invoice's payments, including reversed payments.
func paymentTable(n *client.Invoice, zone *time.Location) *table {
	t := &table{Caption: "Payments", Head: []column{{Text: "Payment"}, {Text: "When"}, {Text: "State"}, {Text: "Amount", Numeric: true}}}
	all := slices.Concat(n.Payments, n.Reversed)
	slices.SortFunc(all, func(a, b client.Payment) int { return a.N - b.N })
	for i := range all {
		p := &all[i]
		state := marked("good", "counts")
		if p.ReversedAt != nil {
			state = marked("bad", "reversed")
			state.Sub = p.ReversedAt.In(zone).Format("2 Jan 2006, 15:04") + ": " + p.Reason
		}
		t.Rows = append(t.Rows, []cell{
			{Text: paymentName(p), Sub: referenceOf(p)},
			text(p.At.In(zone).Format("2 Jan 2006, 15:04")), state,
			amount(words.Money(p.AmountMinor, n.Currency)),
		})
	}
	return t
}

func paymentName(p *client.Payment) string { return strconv.Itoa(p.N) + ". " + parts.PaidBy(p) }

func referenceOf(p *client.Payment) string {
	if p.Reference == nil {
		return ""
	}
	return *p.Reference
}

// voidable reports whether no payment prevents the invoice from being voided. The invoice must be finalized, or
// be paid by credits alone.
func voidable(n *client.Invoice) bool {
	money := slices.ContainsFunc(n.Payments, func(p client.Payment) bool { return p.Kind == "payment" })
	byCredits := n.Status == "paid" && n.Kind != "credit_note" && (n.CreditsMinor > 0 || n.PaidMinor > 0)
	return !money && (n.Status == "finalized" || byCredits)
}

func payForm(here, currency string) *form {
	id := once()
	id.Optional = true
	return &form{Name: "pay", Title: "Note a payment", Action: here + "/pay", Button: "Note the payment", Class: "primary", Fields: []field{
		id,
		{Name: "amount_minor", Label: "Amount, " + currency, Kind: kindMoney, Currency: currency, Optional: true, Help: "All that is open without one."},
		{Name: "reference", Label: "Reference of the payment", Kind: kindText, Optional: true},
	}}
}

func applyForm(here string) *form {
	return &form{
		Name: "apply", Title: "Pay by credits", Action: here + "/apply-credits", Button: "Pay by the customer's credits",
		Note: "Credits that have not expired pay what is open, in their order.",
	}
}

func reverseForm(here string, n *client.Invoice) *form {
	var standing []option
	for i := range n.Payments {
		p := &n.Payments[i]
		standing = append(standing, option{strconv.Itoa(p.N), paymentName(p) + ", " + words.Money(p.AmountMinor, n.Currency)})
	}
	return &form{
		Name: "reverse", Title: "Reverse a payment", Action: here + "/reverse", Button: "Reverse it", Class: "danger",
		Note: "A debit that bounced, say. The payment counts no more, and its amount is open again.", Fields: []field{
			once(), {Name: "payment", Label: "Payment", Kind: kindSelect, Options: standing}, {Name: "reason", Label: "Reason", Kind: kindText},
		},
	}
}

func (v *visit) payInvoice() (*page.View, error) {
	n, err := v.API.Invoice(v.Ctx(), v.R.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return v.sent(post{
		form: payForm(v.invoiceURL(), n.Currency), method: http.MethodPost, path: at(v.invoicePath() + "/pay"),
		to: v.invoiceURL() + "?done=paid",
	}, v.invoicePage)
}

func (v *visit) applyCredits() (*page.View, error) {
	return v.sent(post{
		form: applyForm(v.invoiceURL()), method: http.MethodPost, path: at(v.invoicePath() + "/apply-credits"),
		to: v.invoiceURL() + "?done=applied",
	}, v.invoicePage)
}

func (v *visit) reversePayment() (*page.View, error) {
	n, err := v.API.Invoice(v.Ctx(), v.R.PathValue("id"))
	if err != nil {
		return nil, err
	}
	path := func(members map[string]any) string {
		payment, _ := members["payment"].(string)
		delete(members, "payment")
		return v.invoicePath() + "/payments/" + page.Segment(payment) + "/reverse"
	}
	return v.sent(post{form: reverseForm(v.invoiceURL(), &n), method: http.MethodPost, path: path, to: v.invoiceURL() + "?done=reversed"}, v.invoicePage)
}

// withdrawForm returns the form that withdraws the remaining amount of a credit.
func withdrawForm(s *subject, currency string) *form {
	return &form{
		Name: "withdraw", Title: "Withdraw a credit", Action: s.here("/credits/withdraw"), Button: "Withdraw it", Class: "danger",
		Note: "What has paid an invoice stays.", Fields: []field{
			once(),
			{Name: "credit", Label: "Credit", Kind: kindText, Help: "Its id, as the list shows it."},
			{Name: "amount_minor", Label: "Amount, " + currency, Kind: kindMoney, Currency: currency, Optional: true, Help: "All that is left without one."},
			{Name: "reason", Label: "Reason", Kind: kindText},
		},
	}
}

func (v *visit) withdrawCredit() (*page.View, error) {
	s, err := v.subject()
	if err != nil {
		return nil, err
	}
	account, err := v.API.Account(v.Ctx(), v.Key)
	if err != nil {
		return nil, err
	}
	path := func(members map[string]any) string { return named(v.Of("/credits/"), "credit")(members) + "/withdraw" }
	return v.sent(post{form: withdrawForm(s, account.Currency), method: http.MethodPost, path: path, to: s.here("/billing?done=withdrawn")}, v.billingPage)
}
