package parts

import (
	"net/http"
	"net/url"
	"strings"

	"quotad/client"
	"quotad/internal/web/page"
	"quotad/internal/web/words"
)

// CostData contains the cost of the running billing period so far, and its projected cost.
type CostData struct {
	Period    string
	Due       string
	Projected string // amount due at the present pace, or empty without a projection
	Lines     []CostLine
	Totals    []CostLine // taxes and credits, shown below the lines
	Total     CostLine
	Free      bool // the customer is not billed
	UntilDay  string
}

// A CostLine is an invoice line with the amount so far and, if there is a projection, the projected amount.
type CostLine struct{ Name, How, Amount, Projected string }

// CostOf queries the invoice of the running period. If there is none, the customer is not billed. A projection
// needs the limits. If the limits cannot be read, CostOf returns the cost without a projection.
func CostOf(v *page.Visit) (*CostData, error) {
	i, err := v.API.Upcoming(v.Ctx(), v.Key, url.Values{"projection": {"true"}})
	if problem, asked := page.ProblemOf(err); asked && problem.Status >= http.StatusInternalServerError {
		i, err = v.API.Upcoming(v.Ctx(), v.Key, nil)
	}
	if problem, asked := page.ProblemOf(err); asked && (problem.Status == http.StatusNotFound || problem.Status == http.StatusConflict) {
		return &CostData{Free: true}, nil
	}
	if err != nil {
		return nil, err
	}
	due := pricing{i.Currency, i.Projection != nil}
	p := i.Projection
	if p == nil {
		p = &client.Projection{Lines: i.Lines, Taxes: i.Taxes, CreditsMinor: i.CreditsMinor, AmountDueMinor: i.AmountDueMinor}
	}
	data := &CostData{
		Period: words.Span(i.PeriodStart, i.PeriodEnd, v.Zone), UntilDay: i.PeriodEnd.Add(-1).In(v.Zone).Format("2 January"),
		Lines: due.lines(i.Lines, p.Lines), Total: due.line("Due so far", "", i.AmountDueMinor, p.AmountDueMinor),
	}
	data.Due, data.Projected = data.Total.Amount, data.Total.Projected
	for n, t := range i.Taxes { // the projection has the same rates in the same order
		data.Totals = append(data.Totals, due.line(t.Name, t.Percent+" %", t.TaxMinor, p.Taxes[n].TaxMinor))
	}
	if i.CreditsMinor != 0 || p.CreditsMinor != 0 {
		data.Totals = append(data.Totals, due.line("Credits", "", -i.CreditsMinor, -p.CreditsMinor))
	}
	return data, nil
}

// pricing formats amounts so far together with the projected amounts.
type pricing struct {
	currency  string
	projected bool
}

func (p pricing) line(name, how string, soFar, projected int64) CostLine {
	l := CostLine{Name: name, How: how, Amount: words.Money(soFar, p.currency)}
	if p.projected {
		l.Projected = words.Money(projected, p.currency)
	}
	return l
}

// lines merges the lines of two invoices of one period. Both invoices list their lines in the same order. Except
// for usage, an invoice omits lines of 0.
func (p pricing) lines(soFar, projected []client.Line) (all []CostLine) {
	add := func(l *client.Line, soFar, projected int64) {
		name, how := wordsOf(l)
		all = append(all, p.line(name, how, soFar, projected))
	}
	for i := range projected {
		next := &projected[i]
		at := 0
		for at < len(soFar) && !isAs(&soFar[at], next) {
			at++
		}
		if at == len(soFar) {
			add(next, 0, next.AmountMinor)
			continue
		}
		for ; at > 0; at-- {
			add(&soFar[0], soFar[0].AmountMinor, 0)
			soFar = soFar[1:]
		}
		add(&soFar[0], soFar[0].AmountMinor, next.AmountMinor)
		soFar = soFar[1:]
	}
	for i := range soFar {
		add(&soFar[i], soFar[i].AmountMinor, 0)
	}
	return all
}

// isAs reports whether two lines charge for the same item and period, in whatever quantity.
func isAs(l, other *client.Line) bool {
	if l.Kind != other.Kind || !l.From.Equal(other.From) || !l.To.Equal(other.To) {
		return false
	}
	if l.Kind == "usage" && l.Meter != nil && other.Meter != nil {
		return *l.Meter == *other.Meter
	}
	return l.Description == other.Description
}

// LineOf describes a line of a single invoice in words.
func LineOf(l *client.Line, currency string) CostLine {
	name, how := wordsOf(l)
	return pricing{currency: currency}.line(name, how, l.AmountMinor, 0)
}

// wordsOf returns the name of an invoice line and the explanation of its amount.
func wordsOf(l *client.Line) (name, how string) {
	name, how, _ = strings.Cut(l.Description, ": ")
	if l.Kind == "usage" {
		how = words.Number(l.Quantity) + " used"
		if l.Level != nil {
			how = words.Decimal(l.Level.Exact) + " held"
		}
		if l.Included > 0 {
			how += ", " + words.Short(l.Included) + " included"
		}
	}
	return name, how
}
