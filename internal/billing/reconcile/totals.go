package reconcile

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/rating"
)

// selectPaid reads the credits that an invoice used, returned and granted, the credit notes on it, and its
// charges. Applied entries and credit notes are negative.
const selectPaid = `
	SELECT w.id::text, e.applied, e.returned, e.granted, n.subtotal, n.tax, n.total,
		coalesce((SELECT sum(c.amount_minor) FROM charges c WHERE c.invoice_id = w.id), 0)::bigint
	FROM unnest($1::uuid[]) AS w (id),
	LATERAL (
		SELECT coalesce(-sum(amount_minor) FILTER (WHERE kind = 'applied'), 0)::bigint AS applied,
			coalesce(sum(amount_minor) FILTER (WHERE kind = 'returned'), 0)::bigint AS returned,
			coalesce(sum(amount_minor) FILTER (WHERE kind = 'granted'), 0)::bigint AS granted
		FROM credit_entries WHERE invoice_id = w.id) e,
	LATERAL (
		SELECT coalesce(-sum(subtotal_minor), 0)::bigint AS subtotal, coalesce(-sum(tax_minor), 0)::bigint AS tax,
			coalesce(-sum(total_minor), 0)::bigint AS total
		FROM invoices WHERE of = w.id AND kind = 'credit_note') n`

// paid is a row of selectPaid.
type paid struct{ applied, returned, granted, subtotal, tax, total, charges int64 }

// totals checks that the sums of invoices follow from their lines.
func (p *page) totals(ctx context.Context) error {
	all := make(map[string]paid, len(p.ids))
	var id string
	var of paid
	rows, _ := p.tx.Query(ctx, selectPaid, p.ids)
	_, err := pgx.ForEachRow(rows, []any{&id, &of.applied, &of.returned, &of.granted, &of.subtotal, &of.tax, &of.total, &of.charges}, func() error {
		all[id] = of
		return nil
	})
	if err != nil {
		return err
	}
	for _, i := range p.invoices {
		s := sums{p: p, i: i, of: all[i.ID]}
		s.subtotal()
		if i.Kind == billing.KindCreditNote {
			s.note()
			continue
		}
		s.charges()
		s.taxes()
		s.credits()
		s.notes()
	}
	return nil
}

// sums contains the sums of one invoice.
type sums struct {
	p  *page
	i  *billing.Invoice
	of paid
}

// equal reports a failed check if two amounts differ.
func (s *sums) equal(expected, found int64, detail string) {
	if expected != found {
		s.p.tell(LinesAreTotals, s.i, Disagreement{}.differs(expected, found, detail))
	}
}

func (s *sums) subtotal() {
	sum := int64(0)
	for n := range s.i.Lines {
		sum += s.i.Lines[n].AmountMinor
	}
	s.equal(sum, s.i.SubtotalMinor, "The subtotal is not the sum of the lines.")
}

// charges checks that each charge is a line. The charges of a void invoice are on another invoice.
func (s *sums) charges() {
	sum := int64(0)
	for n := range s.i.Lines {
		if l := &s.i.Lines[n]; l.Kind == billing.LineCharge {
			sum += l.AmountMinor
		}
	}
	if s.i.Status != billing.StatusVoid {
		s.equal(s.of.charges, sum, "Its lines of charges are not the charges that it took.")
	}
}

// rates returns the invoice's taxes as of its finalization.
func (s *sums) rates() (*rating.Taxes, error) {
	return rating.NewTaxes(assembly.RatesIn(s.i))
}

func (s *sums) taxes() {
	rates, err := s.rates()
	var taxed rating.Taxed
	if err == nil {
		taxed, err = rates.On(s.i.SubtotalMinor)
	}
	if err != nil {
		s.p.tell(LinesAreTotals, s.i, Disagreement{}.says("The taxes cannot be computed: "+err.Error()))
		return
	}
	for n, t := range taxed.Taxes {
		s.equal(t.TaxMinor, s.i.Taxes[n].TaxMinor, fmt.Sprintf("The tax %q is another part of the subtotal.", t.Name))
		s.equal(t.BaseMinor, s.i.Taxes[n].BaseMinor, fmt.Sprintf("The tax %q is on another amount.", t.Name))
	}
	s.equal(taxed.TaxMinor, s.i.TaxMinor, "The tax is not the sum of the taxes.")
	s.equal(taxed.TotalMinor, s.i.TotalMinor, "The total is not the subtotal with its tax.")
}

// credits checks the credits that the invoice used, returned and granted.
func (s *sums) credits() {
	s.equal(s.of.applied, s.i.CreditsMinor, "The credits are not what entries of credits paid.")
	returned := int64(0)
	if s.i.Status == billing.StatusVoid {
		returned = s.i.CreditsMinor
	}
	s.equal(returned, s.of.returned, "A void invoice gives back the credits that it took, and no other one does.")
	s.equal(max(0, s.i.TotalMinor)-s.i.CreditsMinor, s.i.AmountDueMinor, "The amount due is not the total less the credits.")
	s.equal(max(0, -s.i.TotalMinor), s.of.granted, "A total below 0 becomes a credit of that amount.")
}

// notes checks the credit notes of the invoice together: their tax must be the tax on the sum that they
// credit.
func (s *sums) notes() {
	// If a payment was reversed, the invoice is finalized even if notes credited all of it.
	whole := s.of.subtotal > 0 && s.of.subtotal == s.i.SubtotalMinor
	fits := whole == (s.i.Status == billing.StatusCredited) || whole && s.i.Status == billing.StatusFinalized
	if !fits || s.of.subtotal > max(0, s.i.SubtotalMinor) {
		s.p.tell(LinesAreTotals, s.i, Disagreement{}.differs(s.i.SubtotalMinor, s.of.subtotal,
			"An invoice is credited when credit notes took all of its subtotal, and never more. Its status is "+s.i.Status+"."))
	}
	if s.of.subtotal == 0 {
		return
	}
	rates, err := s.rates()
	var taxed rating.Taxed
	if err == nil {
		taxed, err = rates.CreditNote(0, s.of.subtotal)
	}
	if err != nil {
		s.p.tell(LinesAreTotals, s.i, Disagreement{}.says("The taxes of its credit notes cannot be computed: "+err.Error()))
		return
	}
	s.equal(-taxed.TaxMinor, s.of.tax, "The credit notes took another tax than that of what they took.")
	s.equal(-taxed.TotalMinor, s.of.total, "The credit notes add up to another total.")
}

// note checks the sums within a credit note. The check of its invoice compares it with other notes.
func (s *sums) note() {
	tax, total := int64(0), s.i.SubtotalMinor
	for _, t := range s.i.Taxes {
		tax += t.TaxMinor
		if !t.Inclusive {
			total += t.TaxMinor
		}
	}
	s.equal(tax, s.i.TaxMinor, "The tax is not the sum of the taxes.")
	s.equal(total, s.i.TotalMinor, "The total is not the subtotal with its tax.")
	money := billing.NoteMoney{}
	if s.i.Money != nil {
		money = *s.i.Money
	}
	s.equal(-s.i.TotalMinor, money.OpenMinor+money.CarriedMinor+money.OutsideMinor+money.ReturnedMinor,
		"Where the note's money went does not add up to its total.")
	s.equal(money.CarriedMinor, s.of.granted, "The note became a credit of another amount.")
	s.equal(money.ReturnedMinor, s.of.returned, "The note returned another amount to credits.")
}
