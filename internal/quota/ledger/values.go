package ledger

import (
	"fmt"

	"quotad/internal/quota/session"
)

// ManyValuesError says that a charge would make more counters of attributes' values than one
// customer may have made in a second. Nothing was charged, and no counter was made.
type ManyValuesError struct{ Most int }

func (e *ManyValuesError) Error() string {
	return fmt.Sprintf("the customer's hits bring more new values of attributes than a node takes in a second (%d, --max-new-values); values that are known go on. Send it again after Retry-After. Nothing was charged", e.Most)
}

// Unwrap returns ErrBusy: it may be sent again.
func (e *ManyValuesError) Unwrap() error { return session.ErrBusy }

// makeValues notes the counters of values that a charge to a target's accounts makes. It comes before
// the charge. Errors: *ManyValuesError.
func (b *books) makeValues(accounts []*account) error {
	more := 0
	for _, a := range accounts[1:] {
		if !a.there && !a.dirty { // else an earlier operation of this transaction makes it
			more++
		}
	}
	if more == 0 {
		return nil
	}
	customer := accounts[0].key.Customer
	if !b.node.Values.Fit(customer, b.made[customer]+more, b.node.Stopwatch()) {
		b.node.Totals.ManyValues.Add(1)
		return &ManyValuesError{b.node.Values.Most()}
	}
	b.made[customer] += more
	return nil
}
