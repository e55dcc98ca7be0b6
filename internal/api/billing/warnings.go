package billing

import (
	"fmt"

	"quotad/client"
	"quotad/internal/billing"
	"quotad/internal/billing/document"
)

// maxShown is the maximum number of letters that a warning shows.
const maxShown = 20

// warnings lists texts that invoice documents cannot show as they were written.
type warnings []client.Warning

// text adds a warning about letters that the PDF fonts do not contain.
func (w *warnings) text(field, words string) {
	letters := document.Unprintable(words)
	if len(letters) == 0 {
		return
	}
	shown, more := letters, ""
	if len(letters) > maxShown {
		shown, more = letters[:maxShown], fmt.Sprintf(" and %d others", len(letters)-maxShown)
	}
	*w = append(*w, client.Warning{
		Field: field, Detail: "The PDF shows a box for each of these letters: " + string(shown) + more + ". HTML, JSON and CSV have them.",
	})
}

func (w *warnings) lines(field string, lines []string) {
	for i, words := range lines {
		w.text(fmt.Sprintf("%s[%d]", field, i), words)
	}
}

// ofAccount returns the warnings about an account's printed texts.
func ofAccount(a *billing.Account) (w warnings) {
	w.text("buyer.name", a.Buyer.Name)
	w.lines("buyer.address", a.Buyer.Address)
	w.text("buyer.country", a.Buyer.Country)
	w.text("buyer.tax_id", a.Buyer.TaxID)
	for i, t := range a.Taxes {
		w.text(fmt.Sprintf("taxes[%d].name", i), t.Name)
		w.text(fmt.Sprintf("taxes[%d].note", i), t.Note)
	}
	w.text("order_reference", a.OrderReference)
	w.lines("notes", a.Notes)
	return w
}

// ofSeller returns the warnings about a seller's printed texts.
func ofSeller(s *billing.Seller) (w warnings) {
	w.text("name", s.Name)
	w.lines("address", s.Address)
	w.text("country", s.Country)
	w.text("tax_id", s.TaxID)
	w.text("registration", s.Registration)
	w.text("email", s.Email)
	w.lines("payment", s.Payment)
	w.lines("footer", s.Footer)
	w.text("prefix", s.Prefix)
	return w
}
