package closing

import (
	"testing"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
)

// An invoice says what its credit notes took off, and what is still owed. What was due when it was
// finalized stays. A note and a reissue name their invoice by its number.
func TestNotesTakeOffWhatIsOwed(t *testing.T) {
	w, id := begun(t)
	w.clock("2026-02-01T01:00:10Z")
	w.clock("2026-03-01T01:00:10Z")
	first, second := w.stored(id)[0], w.stored(id)[1]
	for n, part := range []int64{500, 1500} {
		note, _, err := w.invoices.CreditNote(t.Context(), first.ID, assembly.NoteRequest{
			Lines: []assembly.NoteLine{{N: 1, AmountMinor: part}}, Reason: "an outage", To: assembly.Outside,
		}, string(rune('a'+n)), 1)
		w.check(err)
		if note.OfNumber != first.Number || note.CreditedMinor != 0 {
			t.Errorf("note %d is of %q and was credited %d", n, note.OfNumber, note.CreditedMinor)
		}
		i, err := w.invoices.Invoice(t.Context(), first.ID)
		w.check(err)
		credited := []int64{500, 2000}[n]
		if i.AmountDueMinor != 2000 || i.CreditedMinor != credited || i.OpenMinor() != 2000-credited {
			t.Errorf("after note %d: due %d, credited %d, open %d", n, i.AmountDueMinor, i.CreditedMinor, i.OpenMinor())
		}
	}
	_, err := w.invoices.Void(t.Context(), second.ID, "a mistake", true)
	w.check(err)
	all := w.stored(id)
	for _, i := range all {
		if i.Of == second.ID && i.Status == billing.StatusDraft && i.OfNumber == second.Number {
			return
		}
	}
	t.Errorf("no reissue names invoice %s: %+v", second.Number, all)
}
