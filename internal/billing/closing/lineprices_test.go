package closing

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/invoices"
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

// pricesOf is what an invoice's lines say of their prices, and whether its digest is right.
func (w *world) pricesOf(i *billing.Invoice) string {
	w.Helper()
	var b strings.Builder
	for n := range i.Lines {
		l := &i.Lines[n]
		fmt.Fprintf(&b, "%s %s %s/%d/%s/%s", l.Kind, l.Meter, l.UnitPrice, l.PackageSize, l.PackagePrice, l.Applied)
		for _, t := range l.Tiers {
			flat := "?"
			if t.FlatPrice != nil {
				flat = *t.FlatPrice
			}
			fmt.Fprintf(&b, " [%s %s]", t.UnitPrice, flat)
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
	return b.String() + "its digest"
}

// saidPrices is what lines of January say.
const saidPrices = "base  /0//; usage api 0.0500/0//minimum; usage mail /3/2/; usage disk /0// [1 0.5] [0.1 ?]; usage fax /0//maximum [1 ?]; "

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
	w.same("the invoice", w.pricesOf(w.stored(acme)[0]), saidPrices+"its digest")
}

// Charges of one instant come in the order in which they were made, whatever their ids are.
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
