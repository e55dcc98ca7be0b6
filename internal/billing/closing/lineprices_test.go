package closing

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/invoices"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// priceWorld has a customer acme with usage by each price model in January, and the draft of it.
func priceWorld(t *testing.T) (w *world, acme int64) {
	w = newWorld(t)
	meters := []string{"api", "mail", "disk", "fax"}
	for _, meter := range meters {
		planstest.Declare(w, w.store, meter)
	}
	w.plan("pro", 2000, `[
		{"meter":"api","model":"per_unit","unit_price":"0.0500","included":2,"minimum_minor":900},
		{"meter":"mail","model":"package","package_size":3,"package_price":"2"},
		{"meter":"disk","model":"graduated","tiers":[{"up_to":5,"unit_price":"1","flat_price":"0.5"},{"up_to":null,"unit_price":"0.1"}]},
		{"meter":"fax","model":"volume","maximum_minor":10,"tiers":[{"up_to":null,"unit_price":"1"}]}]`)
	planstest.SetClock(w, w.store, "clock", "2026-01-01T00:00:00Z")
	acme = w.customer("acme", "pro")
	for _, meter := range meters {
		w.hit("acme", meter, 7)
	}
	w.clock("2026-02-01T00:00:10Z")
	return w, acme
}

// pricesOf is what an invoice's lines say of their prices, the form of its digest, and whether the digest
// is right.
func (w *world) pricesOf(i *billing.Invoice) string {
	w.Helper()
	var b strings.Builder
	for n := range i.Lines {
		l := &i.Lines[n]
		fmt.Fprintf(&b, "%s %s %s/%d/%s/%s", l.Kind, l.Meter, l.UnitPrice, l.PackageSize, l.PackagePrice, l.Applied)
		for _, t := range l.Tiers {
			unit, flat := "?", "?"
			if t.UnitPrice != nil {
				unit = *t.UnitPrice
			}
			if t.FlatPrice != nil {
				flat = *t.FlatPrice
			}
			fmt.Fprintf(&b, " [%s %s]", unit, flat)
		}
		b.WriteString("; ")
	}
	if i.Status == billing.StatusDraft {
		return b.String() + "draft"
	}
	sum, err := assembly.Digest(i)
	w.check(err)
	if !bytes.Equal(sum, i.Digested) {
		return b.String() + "another digest"
	}
	return b.String() + fmt.Sprintf("form %d", i.DigestForm)
}

// What lines of January say, and what they say if a version wrote them that knew no prices.
const (
	saidPrices  = "base  /0//; usage api 0.0500/0//minimum; usage mail /3/2/; usage disk /0// [1 0.5] [0.1 ?]; usage fax /0//maximum [1 ?]; "
	saidNothing = "base  /0//; usage api /0//; usage mail /0//; usage disk /0// [? ?] [? ?]; usage fax /0// [? ?]; "
)

// unsay makes the lines of drafts as the version before writes them.
func (w *world) unsay() {
	w.Helper()
	w.exec(`UPDATE invoice_lines l SET unit_price = NULL, package_size = NULL, package_price = NULL, applied = NULL, tiers = coalesce((
			SELECT jsonb_agg(t - 'unit_price' - 'flat_price' ORDER BY n) FROM jsonb_array_elements(tiers) WITH ORDINALITY AS e (t, n)), '[]')
		FROM invoices i WHERE i.id = l.invoice_id AND i.status = 'draft'`)
}

// finalizeAsBefore finalizes a draft by the statement of the version before.
func (w *world) finalizeAsBefore(i *billing.Invoice) {
	w.Helper()
	number := pgtest.Query[int64](w, w.url, `UPDATE sellers SET next_number = next_number + 1 WHERE key = $1 RETURNING next_number - 1`, i.Seller.Key)
	final, err := assembly.Finalize(*i, number, i.FinalizeAt)
	w.check(err)
	final.DigestForm = 1
	sum, err := assembly.Digest(&final)
	w.check(err)
	w.exec(`UPDATE invoices SET status = $2, finalized_at = $3, due_at = $4, seller = $5, number = $6, prefix = $7, digest = decode($8, 'hex') WHERE id = $1::uuid`,
		i.ID, final.Status, *final.FinalizedAt, *final.DueAt, final.Seller.Key, number, final.Seller.Prefix, hex.EncodeToString(sum))
}

func (w *world) exec(statement string, args ...any) {
	w.Helper()
	_, err := w.store.Pool().Exec(w.Context(), statement, args...)
	w.check(err)
}

func (w *world) same(what, got, want string) {
	w.Helper()
	if got != want {
		w.Errorf("%s:\n%s\nwant\n%s", what, got, want)
	}
}

// A draft and what is finalized of it say the same prices, and the digest has them.
func TestLinesKeepTheirPrice(t *testing.T) {
	w, acme := priceWorld(t)
	w.same("the draft", w.pricesOf(w.stored(acme)[0]), saidPrices+"draft")
	w.clock("2026-02-01T02:00:00Z")
	w.same("the invoice", w.pricesOf(w.stored(acme)[0]), saidPrices+"form 4")
}

// Beside nodes of the version before: whoever wrote the lines, and whoever finalizes, the digest is of
// the form that the invoice names.
func TestFormsOfDigestsSideBySide(t *testing.T) {
	t.Run("the lines are of before", func(t *testing.T) {
		w, acme := priceWorld(t)
		w.unsay()
		w.same("the draft", w.pricesOf(w.stored(acme)[0]), saidNothing+"draft")
		w.clock("2026-02-01T02:00:00Z")
		w.same("the invoice", w.pricesOf(w.stored(acme)[0]), saidPrices+"form 4")
	})
	t.Run("their tiers are not", func(t *testing.T) {
		w, acme := priceWorld(t)
		w.exec(`UPDATE invoice_lines SET unit_price = NULL WHERE meter = 'api'`)
		w.clock("2026-02-01T02:00:00Z")
		w.same("the invoice", w.pricesOf(w.stored(acme)[0]), saidPrices+"form 4")
	})
	t.Run("a node of before finalizes", func(t *testing.T) {
		w, acme := priceWorld(t)
		w.finalizeAsBefore(w.stored(acme)[0])
		w.same("the invoice", w.pricesOf(w.stored(acme)[0]), saidPrices+"form 1")
	})
	t.Run("a draft that a node has held", func(t *testing.T) {
		w := newWorld(t)
		planstest.Declare(w, w.store, "api")
		w.plan("dear", 0, `[{"meter":"api","model":"per_unit","unit_price":"1000000"}]`)
		planstest.SetClock(w, w.store, "clock", "2026-01-01T00:00:00Z")
		dear := w.customer("dear", "dear")
		w.hit("dear", "api", 10_000_000) // 10¹⁵ minor units
		w.clock("2026-02-01T02:00:00Z")
		draft := w.stored(dear)[0]
		if draft.Status != billing.StatusDraft || draft.Held == "" || draft.DigestForm != 1 {
			t.Errorf("%s, held %q, of form %d: a node of before does not write the form", draft.Status, draft.Held, draft.DigestForm)
		}
	})
}

// An invoice that was finalized before lines said their price never says one, whatever comes.
func TestLinesOfBeforeSayNothing(t *testing.T) {
	w, acme := priceWorld(t)
	w.unsay()
	w.finalizeAsBefore(w.stored(acme)[0])
	of := w.stored(acme)[0]
	w.same("finalized before", w.pricesOf(of), saidNothing+"form 1")
	_, err := w.invoices.Pay(w.Context(), of.ID, 0, "bank", invoices.Once{})
	w.check(err)
	_, _, err = w.invoices.CreditNote(w.Context(), of.ID, assembly.NoteRequest{
		Lines: []assembly.NoteLine{{N: 2, AmountMinor: 1}}, Reason: "gift", To: assembly.Outside,
	}, "note", 1)
	w.check(err)
	w.clock("2026-03-02T00:00:00Z")
	all := w.stored(acme)
	if len(all) != 3 {
		t.Fatalf("%d invoices", len(all))
	}
	for _, i := range all {
		want := saidNothing + "form 1"
		switch {
		case i.Kind == billing.KindCreditNote:
			want = "usage api /0//; form 4"
		case i.ID != of.ID:
			want = "base  /0//; usage api 0.0500/0//minimum; usage mail /3/2/; usage disk /0//; usage fax /0//; form 4"
		}
		w.same(i.Number, w.pricesOf(i), want)
	}
}

// Charges of one instant come in the order in which they were made, whatever their ids are. Those that
// were made before there was an order keep theirs, and come first.
func TestChargesKeepTheirOrder(t *testing.T) {
	w := newWorld(t)
	w.plan("pro", 2000, `[]`)
	planstest.SetClock(w, w.store, "clock", "2026-01-01T00:00:00Z")
	acme := w.customer("acme", "pro")
	var want []string
	charge := func(id string) {
		_, _, _, err := w.invoices.Charge(w.Context(), "acme", billing.Charge{ID: id, Description: id, AmountMinor: 1, Currency: "USD"}, 1)
		w.check(err)
		want = append(want, id)
	}
	for _, id := range []string{"before b", "before a"} {
		charge(id)
		w.exec(`UPDATE charges SET seq = NULL WHERE id = $1`, id)
	}
	slices.Sort(want)
	for _, id := range []string{"z", "a", "m", "b", "y"} {
		charge(id)
	}
	descriptions := func(i *billing.Invoice) (all []string) {
		for _, l := range i.Lines {
			if l.Kind == billing.LineCharge {
				all = append(all, l.Description)
			}
		}
		return all
	}
	upcoming, err := w.invoices.Upcoming(w.Context(), "acme")
	w.check(err)
	if got := descriptions(upcoming); !slices.Equal(got, want) {
		t.Errorf("upcoming %q, want %q", got, want)
	}
	w.clock("2026-02-01T02:00:00Z")
	if got := descriptions(w.stored(acme)[0]); !slices.Equal(got, want) {
		t.Errorf("invoiced %q, want %q", got, want)
	}
	// A void invoice's charges go to the reissue in the same order.
	_, err = w.invoices.Void(w.Context(), w.stored(acme)[0].ID, "wrong", true)
	w.check(err)
	all := w.stored(acme)
	if got := descriptions(all[len(all)-1]); !slices.Equal(got, want) {
		t.Errorf("reissued %q, want %q", got, want)
	}
}

// A payment keeps when it came and how much was open. So does what is paid by being finalized.
func TestPaymentsKeepTheirInstant(t *testing.T) {
	w, acme := priceWorld(t)
	w.clock("2026-02-01T02:00:00Z")
	of := w.stored(acme)[0]
	if of.PaidAt != nil || of.PaidMinor() != 0 {
		t.Errorf("paid before it was: %v, %v", of.PaidAt, of.PaidMinor())
	}
	_, _, err := w.invoices.CreditNote(w.Context(), of.ID, assembly.NoteRequest{
		Lines: []assembly.NoteLine{{N: 1, AmountMinor: 500}}, Reason: "gift", To: assembly.Outside,
	}, "note", 1)
	w.check(err)
	w.clock("2026-02-03T04:05:06Z")
	paid, err := w.invoices.Pay(w.Context(), of.ID, 0, "bank", invoices.Once{})
	w.check(err)
	if at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC).UnixMicro(); *paid.PaidAt != at || paid.PaidMinor() != of.AmountDueMinor-500 {
		t.Errorf("paid %d at %d, want %d at %d", paid.PaidMinor(), *paid.PaidAt, of.AmountDueMinor-500, at)
	}
	_, _, _, err = w.invoices.Grant(w.Context(), "acme", billing.Credit{ID: "much", Kind: billing.CreditPaid, AmountMinor: 1e6, Currency: "USD"}, 1)
	w.check(err)
	w.clock("2026-03-01T02:00:00Z")
	for _, i := range w.stored(acme) {
		if i.Kind == billing.KindPeriod && i.ID != of.ID && (i.Status != billing.StatusPaid || *i.PaidAt != *i.FinalizedAt || i.PaidMinor() != 0) {
			t.Errorf("finalized at %d with nothing due: %s at %v", *i.FinalizedAt, i.Status, i.PaidAt)
		}
		if i.Kind == billing.KindCreditNote && i.PaidAt != nil {
			t.Error("a credit note has an instant of payment")
		}
	}
}
