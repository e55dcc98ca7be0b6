package admin

import (
	"net/http"

	"quotad/internal/web/page"
	"quotad/internal/web/words"
)

// capForm returns the form that caps the cost of a meter for a customer.
func capForm(s *subject, currency string) *form {
	return &form{
		Name: "cap", Title: "Cap a meter", Action: s.here("/caps"), Button: "Cap", Class: "primary",
		Note: "Nothing is admitted past it, within a second on every node.", Fields: []field{
			{Name: "meter", Label: "Meter", Kind: kindText, Help: "Its key. It has a price."},
			{Name: "amount_minor", Label: "At most in a period, " + currency, Kind: kindMoney, Currency: currency},
		},
	}
}

// capSection returns the section of a customer's caps. If the cap form was submitted with errors, back is that
// form and the section shows it.
func (v *visit) capSection(s *subject, currency string, back *form) section {
	list, err := v.API.Caps(v.Ctx(), v.Key)
	if err != nil {
		v.Note("the caps", err)
		return section{Title: "Caps", Failed: "The caps could not be read just now."}
	}
	writes := v.isAdmin() && s.ArchivedAt == nil
	t := &table{Caption: "Caps", Head: []column{
		{Text: "Meter"},
		{Text: "At most in a period", Numeric: true},
		{Text: "Units in this one", Numeric: true},
		{},
	}, Empty: "Nothing is capped"}
	for i := range list.Items {
		c := &list.Items[i]
		last, units := cell{}, "any number"
		if c.Units != nil {
			units = words.Number(*c.Units)
		}
		if writes {
			last.Form = &form{
				Name: "delete-cap", Action: s.here("/caps/" + page.Segment(c.Meter) + "/delete"), Button: "Delete", Class: "danger",
				Ask: "Then “" + c.Meter + "” may cost any amount again, within a second.", Sure: "Yes, delete it",
			}
		}
		t.Rows = append(t.Rows, []cell{text(c.Meter), amount(words.Money(c.AmountMinor, currency)), amount(units), last})
	}
	part := section{Title: "Caps", Table: t}
	if writes {
		part.Forms = []*form{capForm(s, currency)}
		if back != nil && back.Name == "cap" {
			part.Forms[0] = back
		}
	}
	return part
}

func (v *visit) saveCap() (*page.View, error) {
	s, err := v.subject()
	if err != nil {
		return nil, err
	}
	account, err := v.API.Account(v.Ctx(), v.Key)
	if err != nil {
		return nil, err
	}
	return v.sent(post{
		form: capForm(s, account.Currency), method: http.MethodPut, path: named(v.Of("/caps/"), "meter"), to: s.here("/billing?done=saved"),
	}, v.billingPage)
}

func (v *visit) deleteCap() (*page.View, error) {
	v.Key = v.R.PathValue("key")
	return v.press(func() error { return v.API.DeleteCap(v.Ctx(), v.Key, v.R.PathValue("meter")) },
		"/admin/customers/"+page.Segment(v.Key)+"/billing?done=deleted")
}
