package document

import (
	"strings"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

func (p *paper) row(inv *billing.Invoice, l *billing.Line) row {
	r := row{N: l.N, Description: l.Description, Amount: p.money(l.AmountMinor)}
	if l.From != inv.PeriodStart || l.To != inv.PeriodEnd {
		r.Details = append(r.Details, p.dates.span(l.From, l.To))
	}
	if l.Meter != "" && l.OfLine == 0 { // a note credits an amount, not a quantity
		r.Quantity = billed(l)
		if l.Included != 0 {
			r.Details = append(r.Details, count(l.Included)+" included")
		}
	}
	r.Details = append(r.Details, p.how(l)...)
	r.Tiers = p.tiers(l)
	return r
}

// billed formats the billed quantity of a line for people.
func billed(l *billing.Line) string {
	if level, err := rating.ReadLevel(l.Level.Exact); err == nil && l.Level.By != "" {
		return level.Text()
	}
	return count(l.Quantity)
}

// How explains the amount of a line in the words of the documents: the cost of the units beyond the included
// units, an applied minimum or maximum, and the amount billed before a correction. The result is empty for a
// line without a price.
func How(l *billing.Line, currency string) []string {
	a := amountsIn(currency)
	words := a.how(l)
	for _, t := range a.tiers(l) {
		words = append(words, t.Range+": "+t.Units)
	}
	return words
}

// how returns the same explanation as How, but without tiers.
func (a amounts) how(l *billing.Line) (words []string) {
	quantity := l.Quantity
	if l.Before != nil {
		quantity += l.Before.Quantity
		words = append(words, count(quantity)+" instead of "+count(l.Before.Quantity))
	}
	switch {
	case l.Level.By != "":
		return a.held(l)
	case l.Kind == billing.LineBase || l.Kind == billing.LineUnused:
		return a.base(l)
	case l.Kind == billing.LineMinimum:
		return a.minimum(l)
	case l.Part != nil && (l.Kind == billing.LineUsage || l.Before != nil):
		words = append(words, "Of the full period: "+partText(l.Part, true))
	}
	units := max(0, max(0, quantity)-l.Included)
	switch {
	case l.UnitPrice != "":
		words = append(words, count(units)+" × "+a.exact(l.UnitPrice))
	case l.PackageSize > 0:
		begun := units / l.PackageSize
		if units%l.PackageSize > 0 {
			begun++
		}
		words = append(words, a.packages(begun, l))
	}
	return append(append(words, a.applied(l, true)...), a.before(l)...)
}

// before explains a correction: the amount billed before, and the sum of credit notes if it limits the
// correction.
func (a amounts) before(l *billing.Line) (words []string) {
	b := l.Before
	if b == nil {
		return nil
	}
	if b.CreditedMinor > 0 && b.CreditedMinor == b.AmountMinor+l.AmountMinor {
		words = append(words, "At least "+a.money(b.CreditedMinor)+", the sum of credit notes")
	}
	return append(words, "Less "+a.money(b.AmountMinor)+" billed before")
}

// applied explains the minimum or maximum of a full period that determined the amount. stepwise is passed to
// partText.
func (a amounts) applied(l *billing.Line, stepwise bool) []string {
	if l.Applied == "" || l.WholeMinor == nil {
		return nil
	}
	return []string{strings.ToUpper(l.Applied[:1]) + l.Applied[1:] + " of " + a.money(*l.WholeMinor) + times(l.Part, stepwise) + " applied"}
}

// base explains the part of a base price that a line charges or gives back. The result is empty for a whole
// base price.
func (a amounts) base(l *billing.Line) (words []string) {
	if l.WholeMinor == nil {
		return nil
	}
	charged, amount := *l.WholeMinor, max(l.AmountMinor, -l.AmountMinor)
	if p := l.Part; p != nil {
		words = append(words, a.money(charged)+times(p, true))
		charged = rating.Span{Start: p.OfFrom, End: p.OfTo, From: p.From, To: p.To}.Money(charged)
	}
	if charged > amount {
		words = append(words, "No more than "+a.money(amount)+" was left of it")
	}
	return words
}

// minimum explains the difference between the minimum and the sum of base price and usage.
func (a amounts) minimum(l *billing.Line) []string {
	if l.WholeMinor == nil {
		return nil
	}
	least := *l.WholeMinor
	if p := l.Part; p != nil {
		least = rating.Span{Start: p.OfFrom, End: p.OfTo, From: p.From, To: p.To}.Money(least)
	}
	return []string{"Minimum of " + a.money(*l.WholeMinor) + times(l.Part, true) + ", less " + a.money(least-l.AmountMinor) + " of base price and usage"}
}

// held explains the level of the period that a line bills, and the price of a full period.
func (a amounts) held(l *billing.Line) (words []string) {
	words = append(words, map[string]string{
		plans.ByAverage: "What was held on the average", plans.ByPeak: "The most that was held", plans.ByLast: "What was held at the end",
	}[l.Level.By])
	part := times(l.Part, false)
	beyond := rating.Beyond(l.Level.Exact, l.Included)
	switch {
	case l.UnitPrice != "":
		words = append(words, beyond.Text()+" × "+a.exact(l.UnitPrice)+part)
	case l.PackageSize > 0:
		words = append(words, a.packages(beyond.Begun(l.PackageSize), l)+part)
	case len(l.Tiers) > 0 && part != "" && l.Applied == "":
		words = append(words, "Sum of the tiers"+part)
	}
	return append(words, a.applied(l, false)...)
}

// packages formats a number of packages with the price of a package.
func (a amounts) packages(begun int64, l *billing.Line) string {
	of := " packages of "
	if begun == 1 {
		of = " package of "
	}
	return count(begun) + of + count(l.PackageSize) + " × " + a.exact(l.PackagePrice)
}

func (a amounts) tiers(l *billing.Line) (rows []tierRow) {
	last := "" // the bound of the previous tier
	for _, t := range l.Tiers {
		row := tierRow{Range: "All units", Units: inTier(t.Quantity) + " × " + a.exact(t.UnitPrice), Amount: a.exact(t.Amount)}
		switch {
		case t.UpTo != nil:
			last = count(*t.UpTo)
			row.Range = "Up to " + last
		case last != "":
			row.Range = "Above " + last
		}
		if t.FlatPrice != nil {
			row.Units += " and " + a.exact(*t.FlatPrice) + " flat"
		}
		rows = append(rows, row)
	}
	return rows
}

// inTier formats the units of a tier for people.
func inTier(units billing.Units) string {
	if strings.Contains(string(units), ".") {
		return rating.Short(string(units))
	}
	return rating.Grouped(string(units))
}

// totals returns the sums below the lines. Inclusive taxes follow the total.
func (p *paper) totals(inv *billing.Invoice) []total {
	out := []total{{Name: "Subtotal", Amount: p.money(inv.SubtotalMinor)}}
	var within []total
	for _, t := range inv.Taxes {
		shown := total{Name: t.Name + " " + t.Percent + "% on " + p.money(t.BaseMinor), Amount: p.money(t.TaxMinor), Note: t.Note}
		if t.Inclusive {
			shown.Name = "Includes " + shown.Name
			within = append(within, shown)
			continue
		}
		out = append(out, shown)
	}
	if len(out) == 1 { // nothing is added, so the subtotal is the total
		out = nil
	}
	name := "Total"
	if inv.Kind == billing.KindCreditNote {
		name = "Total credited"
	}
	out = append(out, total{Name: name, Amount: p.money(inv.TotalMinor), Strong: true})
	out = append(out, within...)
	if inv.Kind == billing.KindCreditNote {
		return out
	}
	return append(out, p.settled(inv)...)
}

// manyPayments is the maximum number of payments that a document lists. More payments are shown as one sum.
const manyPayments = 12

// settled returns the sums that reduce an invoice's total (credits, payments and credit notes), and the open
// amount.
func (p *paper) settled(inv *billing.Invoice) (out []total) {
	add := func(name string, minor int64) {
		if minor != 0 {
			out = append(out, total{Name: name, Amount: p.money(minor)})
		}
	}
	add("Credits", -inv.CreditsMinor)
	add("Kept as credit", max(0, -inv.TotalMinor))
	stand := standing(inv)
	for _, paid := range stand {
		add(paidBy(paid)+" on "+p.dates.day(paid.At), -paid.AmountMinor)
	}
	if len(stand) == 0 { // no payments, or too many to list
		add("Paid", -inv.PaidMinor())
	}
	add("Credit notes", -inv.CreditedMinor)
	add("Given back", max(0, inv.CreditedMinor-inv.NotedMinor))
	last := total{Name: "Open", Amount: p.money(inv.OpenMinor()), Last: true}
	switch {
	case inv.Status == billing.StatusVoid:
		return out
	case inv.Status == billing.StatusDraft:
		last.Name, last.Amount = "Amount so far", p.money(inv.AmountDueMinor)
	case inv.OpenMinor() > 0:
		last.Name = "Amount due"
	}
	return append(out, last)
}

// standing returns the payments that are not reversed, or nil if there are too many to list.
func standing(inv *billing.Invoice) (stand []billing.Payment) {
	for _, paid := range inv.Payments {
		if paid.ReversedAt == nil {
			stand = append(stand, paid)
		}
	}
	if len(stand) > manyPayments {
		return nil
	}
	return stand
}

func paidBy(paid billing.Payment) string {
	if paid.Kind == billing.PaymentCredits {
		return "Credits applied"
	}
	return "Paid"
}
