package parts

import (
	"net/http"
	"net/url"
	"strings"

	"quotad/client"
	"quotad/internal/web/page"
	"quotad/internal/web/words"
)

// CostData is what the running billing period costs so far, and what it is projected to cost.
type CostData struct {
	Period    string
	Due       string
	Projected string // what will be due at the pace so far; empty: there is no projection
	Lines     []CostLine
	Totals    []CostLine // below the lines
	Total     CostLine
	Free      bool // nobody is billed
	UntilDay  string
}

// A CostLine has an amount so far, and one that is projected where there is a projection.
type CostLine struct{ Name, How, Amount, Projected string }

// CostOf asks for the invoice of the running period. Where there is none, nobody is billed. A projection needs the limits: if they
// cannot be read, the invoice is shown without one.
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
	for n, t := range i.Taxes { // the same rates, in the same order
		data.Totals = append(data.Totals, due.line(t.Name, t.Percent+" %", t.TaxMinor, p.Taxes[n].TaxMinor))
	}
	if i.CreditsMinor != 0 || p.CreditsMinor != 0 {
		data.Totals = append(data.Totals, due.line("Credits", "", -i.CreditsMinor, -p.CreditsMinor))
	}
	return data, nil
}

// pricing writes amounts so far, and beside them what is projected.
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

// lines are those of two invoices of one period, side by side. Both have the same order; a line of
// 0 is in neither, but for usage.
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

// isAs reports whether a line is of the same thing as another one, of whatever quantity.
func isAs(l, other *client.Line) bool {
	if l.Kind != other.Kind || !l.From.Equal(other.From) || !l.To.Equal(other.To) {
		return false
	}
	if l.Kind == "usage" && l.Meter != nil && other.Meter != nil {
		return *l.Meter == *other.Meter
	}
	return l.Description == other.Description
}

// LineOf is a line of one invoice in words.
func LineOf(l *client.Line, currency string) CostLine {
	name, how := wordsOf(l)
	return pricing{currency: currency}.line(name, how, l.AmountMinor, 0)
}

// wordsOf is a line of an invoice in words.
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
