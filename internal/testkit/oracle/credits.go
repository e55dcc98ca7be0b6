package oracle

import (
	"cmp"
	"math"
	"slices"
)

// A Credit pays invoices.
type Credit struct {
	ID        string // "" of one that was carried
	Kind      string // promotional, paid or carried
	Minor     int64
	Left      int64
	Priority  int
	ExpiresAt *int64
}

// applied is what a credit paid of an invoice.
type applied struct {
	credit *Credit
	minor  int64
}

// Grant gives the customer a credit.
func (l *Life) Grant(c Credit) {
	c.Left = c.Minor
	l.credits = append(l.credits, &c)
	l.expire()
}

// carry makes a credit of what is below 0.
func (l *Life) carry(minor int64) { l.Grant(Credit{Kind: "carried", Minor: minor, Priority: 50}) }

// Credits are all that were granted.
func (l *Life) Credits() []*Credit { return l.credits }

func (c *Credit) expiry() int64 {
	if c.ExpiresAt == nil {
		return math.MaxInt64
	}
	return *c.ExpiresAt
}

// instant is when a credit must not have expired to pay an invoice.
func (i *Invoice) instant() int64 {
	if i.Kind == "opening" {
		return i.Start
	}
	return i.End
}

// apply has credits pay an invoice, in the order of priority, expiry, promotional before paid,
// age. An extra invoice is paid by those that have not expired when it is finalized.
func (l *Life) apply(i *Invoice, finalized int64) {
	at := i.instant()
	if i.extra {
		at = finalized
	}
	i.applied = l.take(i.Paper.Due, at)
	for _, a := range i.applied {
		i.Paper.Due -= a.minor
		i.Paper.Credits += a.minor
	}
}

// take has credits that have not expired at an instant pay an amount.
func (l *Life) take(open, at int64) (all []applied) {
	inOrder := slices.Clone(l.credits)
	promotional := func(c *Credit) int {
		if c.Kind == "promotional" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(inOrder, func(a, b *Credit) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.expiry(), b.expiry()), cmp.Compare(promotional(a), promotional(b)))
	})
	for _, c := range inOrder {
		minor := min(c.Left, open)
		if minor <= 0 || c.expiry() <= at {
			continue
		}
		c.Left -= minor
		open -= minor
		all = append(all, applied{c, minor})
	}
	return all
}

// expire books what has expired, once no invoice is to come that it could pay.
func (l *Life) expire() {
	for _, c := range l.credits {
		if c.expiry() <= l.Clock.Now && !l.couldPay(c) {
			c.Left = 0
		}
	}
}

// couldPay reports whether an invoice of a period that ended before a credit's expiry is to be
// made or finalized.
func (l *Life) couldPay(c *Credit) bool {
	for _, p := range l.periods {
		if !p.closed && p.End < c.expiry() || !p.opened && p.Start < c.expiry() {
			return true
		}
	}
	for _, i := range l.invoices {
		if i.Status == "draft" && !i.extra && i.instant() < c.expiry() {
			return true
		}
	}
	return false
}
