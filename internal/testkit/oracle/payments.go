package oracle

import "slices"

// month30 is how long credits live on at least that come back to the customer's account, µs.
const month30 = int64(30 * 86400 * 1e6)

// A payment is of an invoice: money, or credits where there are some.
type payment struct {
	minor    int64
	credits  []applied
	reversed bool
}

// Open is what is to be paid: due, less what notes took of it, less what was paid.
func (i *Invoice) Open() int64 { return i.Paper.Due - i.noted - i.Paid() }

// Paid is what was paid and not reversed.
func (i *Invoice) Paid() (minor int64) {
	for _, p := range i.payments {
		if !p.reversed {
			minor += p.minor
		}
	}
	return minor
}

// Money is what of it came from outside.
func (i *Invoice) Money() (minor int64) {
	for _, p := range i.payments {
		if !p.reversed && len(p.credits) == 0 {
			minor += p.minor
		}
	}
	return minor
}

// Standing are the numbers, from 1, of the payments that were not reversed.
func (i *Invoice) Standing() (all []int) {
	for n, p := range i.payments {
		if !p.reversed {
			all = append(all, n+1)
		}
	}
	return all
}

// ByCredits reports whether credits alone paid the invoice, and some did.
func (i *Invoice) ByCredits() bool {
	return i.Status == "paid" && i.Money() == 0 && (i.Paper.Credits > 0 || i.Paid() > 0)
}

// settle says the status that follows from what is open.
func (i *Invoice) settle() {
	switch {
	case i.Open() > 0:
		i.Status = "finalized"
	case i.Paper.left == 0 && i.Paper.Subtotal > 0:
		i.Status = "credited"
	default:
		i.Status = "paid"
	}
}

// Pay notes a payment of so much.
func (l *Life) Pay(i *Invoice, minor int64) {
	i.payments = append(i.payments, &payment{minor: minor})
	i.settle()
}

// PayByCredits has the customer's credits pay what is open. It reports whether any did.
func (l *Life) PayByCredits(i *Invoice) bool {
	took := l.take(i.Open(), l.Clock.Now)
	if len(took) == 0 {
		return false
	}
	p := &payment{credits: took}
	for _, a := range took {
		p.minor += a.minor
	}
	i.payments = append(i.payments, p)
	i.settle()
	return true
}

// Reverse takes a payment back. It reports false where a note has returned some of its credits.
func (l *Life) Reverse(i *Invoice, n int) bool {
	p := i.payments[n-1]
	there := int64(0)
	for _, a := range p.credits {
		there += a.minor
	}
	if len(p.credits) > 0 && there != p.minor {
		return false
	}
	p.reversed = true
	l.comeBack(p.credits)
	i.settle()
	l.expire()
	return true
}

// comeBack gives credits what they paid, and has them live on.
func (l *Life) comeBack(all []applied) {
	for _, a := range all {
		a.credit.Left += a.minor
		if a.minor > 0 && a.credit.ExpiresAt != nil && *a.credit.ExpiresAt < l.Clock.Now+month30 {
			until := l.Clock.Now + month30
			a.credit.ExpiresAt = &until
		}
	}
}

// unpay gives back all that credits paid of an invoice that becomes void.
func (l *Life) unpay(i *Invoice) {
	l.comeBack(i.applied)
	for _, p := range i.payments {
		if !p.reversed {
			l.comeBack(p.credits)
			p.reversed = true
		}
	}
}

// credit says where a note's money goes: off what is open, then out, or to a carried credit. What goes so
// came by payments and paid credits, over all notes; the rest goes back to where it came from, the last first.
func (l *Life) credit(i *Invoice, minor int64, toCredits bool) {
	took := min(minor, i.Open())
	i.noted += took
	rest := minor - took
	i.settle()
	sources := []*applied{}
	for n := range i.applied {
		sources = append(sources, &i.applied[n])
	}
	for _, p := range i.payments {
		for n := range p.credits {
			if !p.reversed {
				sources = append(sources, &p.credits[n])
			}
		}
	}
	came := i.Money() - i.outside
	for _, a := range sources {
		if a.credit.Kind == "paid" {
			came += a.minor
		}
	}
	out := min(rest, max(0, came))
	i.outside += out
	rest -= out
	if toCredits && out > 0 {
		l.carry(out)
	}
	for _, a := range slices.Backward(sources) {
		if back := min(rest, a.minor); a.credit.Kind != "paid" {
			a.minor -= back
			a.credit.Left += back
			rest -= back
		}
	}
	l.expire()
}
