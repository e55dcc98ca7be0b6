package document

import "quotad/internal/billing"

func (p *paper) row(inv *billing.Invoice, l *billing.Line) row {
	r := row{N: l.N, Description: l.Description, Amount: amount(l.AmountMinor, p.exponent)}
	if l.From != inv.PeriodStart || l.To != inv.PeriodEnd {
		r.Details = append(r.Details, p.dates.span(l.From, l.To))
	}
	if l.Meter != "" {
		r.Quantity = count(l.Quantity)
		if l.Included != 0 {
			r.Details = append(r.Details, count(l.Included)+" included")
		}
	}
	last := "" // the bound of the tier before
	for _, t := range l.Tiers {
		shown := tierRow{Range: "All units", Quantity: count(t.Quantity), Amount: exact(t.Amount, p.exponent)}
		switch {
		case t.UpTo != nil:
			last = count(*t.UpTo)
			shown.Range = "Up to " + last
		case last != "":
			shown.Range = "Above " + last
		}
		r.Tiers = append(r.Tiers, shown)
	}
	return r
}

// totals are the sums below the lines. Taxes that lie within the total come behind it.
func (p *paper) totals(inv *billing.Invoice) []total {
	out := []total{{Name: "Subtotal", Amount: amount(inv.SubtotalMinor, p.exponent)}}
	var within []total
	for _, t := range inv.Taxes {
		shown := total{Name: t.Name + " " + t.Percent + "% on " + amount(t.BaseMinor, p.exponent), Amount: amount(t.TaxMinor, p.exponent)}
		if t.Inclusive {
			shown.Name = "Includes " + shown.Name
			within = append(within, shown)
			continue
		}
		out = append(out, shown)
	}
	if len(out) == 1 { // nothing is added to the subtotal, so it is the total
		out = nil
	}
	name := "Total"
	if inv.Kind == billing.KindCreditNote {
		name = "Total credited"
	}
	out = append(out, total{Name: name, Amount: amount(inv.TotalMinor, p.exponent), Strong: true})
	out = append(out, within...)
	if inv.Kind == billing.KindCreditNote {
		return out
	}
	if inv.CreditsMinor != 0 {
		out = append(out, total{Name: "Credits", Amount: amount(-inv.CreditsMinor, p.exponent)})
	}
	if inv.TotalMinor < 0 {
		out = append(out, total{Name: "Kept as credit", Amount: amount(-inv.TotalMinor, p.exponent)})
	}
	if inv.CreditedMinor != 0 {
		out = append(out, total{Name: "Credit notes", Amount: amount(-inv.CreditedMinor, p.exponent)})
	}
	due := total{Name: "Amount due", Amount: p.money(inv.OwedMinor()), Last: true}
	switch inv.Status {
	case billing.StatusDraft:
		due.Name = "Amount so far"
	case billing.StatusPaid:
		due.Name, due.Amount = "Amount paid", p.money(inv.AmountDueMinor)
	case billing.StatusVoid, billing.StatusCredited:
		return out
	}
	return append(out, due)
}
