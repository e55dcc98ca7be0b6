package assembly

import (
	"strconv"

	"quotad/internal/billing"
)

const day = int64(24 * 60 * 60 * 1e6) // µs

// Finalize is a draft that is not held, or a new credit note, as it is finalized at an instant
// with the seller's next number. It is paid at once where nothing is due. A credit note stays
// paid, without an instant of it, and has no day to pay. Its digest is to be of the newest form.
func Finalize(draft billing.Invoice, number, at int64) billing.Invoice {
	draft.Number = Number(draft.Seller.Prefix, number)
	draft.FinalizedAt, draft.DigestForm = &at, newestForm
	if draft.Kind == billing.KindCreditNote {
		return draft
	}
	due := at + int64(draft.DueDays)*day
	draft.DueAt = &due
	draft.Status = billing.StatusFinalized
	if draft.AmountDueMinor == 0 {
		draft.Status, draft.PaidAt, draft.PaidMinor = billing.StatusPaid, &at, new(int64)
	}
	return draft
}

// Number is the number of an invoice as it is shown.
func Number(prefix string, number int64) string { return prefix + strconv.FormatInt(number, 10) }
