package admin

import (
	"net/http"

	"quotad/client"
	"quotad/internal/billing/rating"
	"quotad/internal/web/page"
	"quotad/internal/web/words"
)

// compareData is a comparison of plans as the page shows it.
type compareData struct {
	Asked string
	Of    string // customer whose usage is compared
	Rows  []compareRow
	Notes []string
}

type compareRow struct {
	Name, Mono, Sub            string
	InForce, Draft, Difference string
}

func (v *visit) compareDraft(d *planPlayData) error {
	in := client.CompareRequest{}
	if d.Customer != "" {
		in.Customer = &d.Customer
	}
	a, err := v.API.CompareDraft(v.Ctx(), d.Key, &in)
	if problem, told := page.ProblemOf(err); told && problem.Status == http.StatusUnprocessableEntity {
		d.Bad = d.said(problem)
		return nil
	}
	if err != nil {
		return err
	}
	c := &compareData{Asked: words.Short(a.Asked), Of: words.Number(int64(a.Customers)) + " customers"}
	if d.Customer != "" {
		c.Of = d.Customer
	} else if a.Customers == 1 {
		c.Of = "1 customer"
	}
	for _, l := range a.Limits {
		row := compareRow{Name: whatDid(l.InForce, l.Draft), Mono: l.Limit, Sub: hows[howOf(l.InForce, l.Draft)], InForce: "–", Draft: "–", Difference: "–"}
		if l.InForce != nil {
			row.InForce = cellText(l.InForce)
		}
		if l.Draft != nil {
			row.Draft = cellText(l.Draft)
		}
		if l.InForce != nil && l.Draft != nil && l.InForce.How != "unknown" && l.Draft.How != "unknown" {
			row.Difference = difference(l.InForce.Refused, l.Draft.Refused, words.Number)
		}
		c.Rows = append(c.Rows, row)
	}
	amounts := func(n int64) string { return words.Money(n, a.Currency) }
	c.Rows = append(c.Rows,
		compareRow{
			Name: "Refused in all", Sub: "of these, " + words.Short(a.Recorded) + " in fact, retries and all",
			InForce: between(a.InForce.Refused, words.Number), Draft: between(a.Draft.Refused, words.Number),
			Difference: difference(a.InForce.Refused, a.Draft.Refused, words.Number),
		},
		compareRow{
			Name: "Customers refused at least once", InForce: between(a.InForce.Customers, words.Number),
			Draft: between(a.Draft.Customers, words.Number), Difference: difference(a.InForce.Customers, a.Draft.Customers, words.Number),
		})
	billed := compareRow{Name: "Billed", Sub: "if what is admitted had been used", InForce: "too large", Draft: "too large", Difference: "–"}
	if a.InForce.Billed != nil {
		billed.InForce = between(*a.InForce.Billed, amounts)
	}
	if a.Draft.Billed != nil {
		billed.Draft = between(*a.Draft.Billed, amounts)
	}
	if a.InForce.Billed != nil && a.Draft.Billed != nil {
		billed.Difference = difference(*a.InForce.Billed, *a.Draft.Billed, amounts)
	}
	c.Rows = append(c.Rows, billed)
	for _, n := range a.Notes {
		c.Notes = append(c.Notes, n.Text)
	}
	d.Compare = c
	return nil
}

// hows maps the API's value of how to the note beside a limit that explains the source of the limit's numbers.
var hows = map[string]string{
	"by_hour": "played from the hours of usage", "spread": "played, with each hour’s units spread evenly",
	"bounds": "shorter than an hour or per attribute: only bounds can be told", "unknown": "hours of usage do not show it",
	"admits": "soft, or a shadow: lets all pass",
}

func howOf(cells ...*client.CompareCell) (how string) {
	for _, c := range cells {
		if c != nil {
			how = c.How
		}
	}
	return how
}

// whatDid returns the caption for a limit's units. Hard limits show refused units. Soft and shadow limits refuse
// nothing, so they show the units that they admitted past the limit.
func whatDid(cells ...*client.CompareCell) string {
	for _, c := range cells {
		if c != nil && c.How != "admits" {
			return "Refused by"
		}
	}
	return "Admitted past"
}

func cellText(c *client.CompareCell) string {
	switch c.How {
	case "unknown":
		return "not known"
	case "admits":
		return "0"
	}
	return between(c.Refused, words.Number)
}

func between(r client.CompareRange, text func(int64) string) string {
	if r.Least == r.Most {
		return text(r.Least)
	}
	return text(r.Least) + " to " + text(r.Most)
}

// difference returns the difference b − a as text, or a dash if a or b is not exactly known.
func difference(a, b client.CompareRange, text func(int64) string) string {
	if a.Least != a.Most || b.Least != b.Most {
		return "–"
	}
	switch d := b.Least - a.Least; {
	case d > 0:
		return "+" + text(d)
	case d < 0:
		return rating.Minus + text(-d)
	}
	return text(0)
}
