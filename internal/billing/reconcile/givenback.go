package reconcile

import (
	"context"
	"fmt"

	"quotad/internal/billing"
	"quotad/internal/billing/invoices"
)

// givenBack checks that the amount given back for a line does not exceed the line with its corrections. A
// line of a void invoice counts as 0. A correction is reported with the corrected line.
func (p *page) givenBack(ctx context.Context) error {
	stands, err := p.stored.Standings(ctx, p.tx, p.ids)
	if err != nil {
		return err
	}
	for _, i := range p.invoices {
		if i.Kind == billing.KindCreditNote {
			continue
		}
		for n := range i.Lines {
			l := &i.Lines[n]
			s := stands[invoices.LineKey{Invoice: i.ID, N: l.N}]
			if s == nil {
				continue
			}
			came, back := s.AmountMinor+s.CorrectedMinor, s.UnusedMinor+s.NotedMinor
			if i.Status == billing.StatusVoid {
				came = 0
			}
			if back > came && (back > 0 || l.Kind == billing.LineUsage) { // other lines may be negative
				p.tell(GivenBackOnce, i, Disagreement{Meter: l.Meter}.on(l.From).differs(came, back, fmt.Sprintf(
					"Line %d, %s: later invoices and credit notes gave back more than the line and its corrections came to.", l.N, l.Kind)))
			}
		}
	}
	return nil
}
