package locked

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

// makeValues notes the counters of values that a charge to a target's counters makes. It comes before
// the charge. Errors: *ManyValuesError.
func (tx *transaction) makeValues(counters []*counter) error {
	more := 0
	for _, c := range counters[1:] {
		if !c.there && !c.dirty { // else an earlier operation of this transaction makes it
			more++
		}
	}
	if more == 0 {
		return nil
	}
	customer := counters[0].key.Customer
	if !tx.node.Values.Fit(customer, tx.made[customer]+more, tx.node.Stopwatch()) {
		tx.node.Totals.ManyValues.Add(1)
		return &ManyValuesError{tx.node.Values.Most()}
	}
	tx.made[customer] += more
	return nil
}
