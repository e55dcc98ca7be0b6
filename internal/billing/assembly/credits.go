package assembly

import (
	"cmp"
	"math"
	"slices"

	"quotad/internal/billing"
)

// Apply returns the entries with which credits pay an open amount. Credits are used by priority, then by the
// earliest expiry, then promotional before other credits, then by age. A credit counts if it is in the
// currency and has not expired at the instant at, µs. At finalization, that instant is CreditsAt.
func Apply(credits []billing.Credit, currency string, open, at int64) []Entry {
	var counting []billing.Credit
	for _, c := range credits {
		if c.Currency == currency && c.LeftMinor > 0 && expiry(&c) > at {
			counting = append(counting, c)
		}
	}
	slices.SortStableFunc(counting, func(a, b billing.Credit) int {
		return cmp.Or(
			cmp.Compare(a.Priority, b.Priority),
			cmp.Compare(expiry(&a), expiry(&b)),
			cmp.Compare(rank(&a), rank(&b)),
			cmp.Compare(a.Seq, b.Seq),
		)
	})
	var entries []Entry
	for i := 0; i < len(counting) && open > 0; i++ {
		amount := min(open, counting[i].LeftMinor)
		entries = append(entries, Entry{Credit: counting[i].ID, Kind: billing.EntryApplied, AmountMinor: -amount})
		open -= amount
	}
	return entries
}

// Booked returns a copy of credits in which the entries have changed the remaining amounts.
func Booked(credits []billing.Credit, entries []Entry) []billing.Credit {
	after := slices.Clone(credits)
	for _, e := range entries {
		for i := range after {
			if after[i].ID == e.Credit {
				after[i].LeftMinor += e.AmountMinor
			}
		}
	}
	return after
}

// CreditsAt returns the instant, in µs, at which a credit that pays an invoice must not have expired: the end
// of the invoice's period, or the start for an opening invoice. Extra invoices use Input.At instead.
func CreditsAt(inv *billing.Invoice) int64 {
	if inv.Kind == billing.KindOpening {
		return inv.PeriodStart
	}
	return inv.PeriodEnd
}

// Expired returns entries for the full remaining amounts of credits that have expired at an instant, µs. The
// caller must ensure that none of these credits could still pay an invoice.
func Expired(credits []billing.Credit, at int64) []Entry {
	var entries []Entry
	for _, c := range credits {
		if c.LeftMinor > 0 && c.ExpiresAt != nil && *c.ExpiresAt <= at {
			entries = append(entries, Entry{Credit: c.ID, Kind: billing.EntryExpired, AmountMinor: -c.LeftMinor})
		}
	}
	return entries
}

func expiry(c *billing.Credit) int64 {
	if c.ExpiresAt == nil {
		return math.MaxInt64
	}
	return *c.ExpiresAt
}

func rank(c *billing.Credit) int {
	if c.Kind == billing.CreditPromotional {
		return 0
	}
	return 1
}
