package closing

import (
	"encoding/json"
	"fmt"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/plans"
	"quotad/internal/testkit/planstest"
)

// bought writes an account with a buyer.
func (w *world) bought(customer string) {
	w.Helper()
	_, err := w.accounts.PutAccount(w.Context(), customer, &accounts.AccountInput{
		Seller: "default", DueDays: 14, Buyer: billing.Buyer{Name: "Ada Lovelace", Address: []string{"St James's Square"}, Country: "GB"},
	}, planstest.AnyVersion)
	w.check(err)
}

// buyer is who pays by a customer's account.
func (w *world) buyer(customer int64) string {
	w.Helper()
	var raw []byte
	w.check(w.store.Pool().QueryRow(w.Context(), `SELECT buyer FROM billing_accounts WHERE customer_id = $1`, customer).Scan(&raw))
	var b billing.Buyer
	w.check(json.Unmarshal(raw, &b))
	return b.Name
}

// The buyer of an erased customer goes as soon as no invoice needs it any more. Invoices that are
// finalized keep it, and a draft that is held does until it is finalized.
func TestErasedBuyersGo(t *testing.T) {
	const free, priced = `[]`, `[{"meter":"api","model":"per_unit","unit_price":"1000000"}]`
	for name, c := range map[string]struct {
		prices  string
		units   int64
		archive bool // and its last invoice is final before it is erased
		want    string
		invoice string
	}{
		"nothing was ever billed":      {prices: free},
		"a last invoice":               {prices: priced, units: 1, invoice: "finalized Ada Lovelace"},
		"all was billed before":        {prices: priced, units: 1, archive: true, invoice: "finalized Ada Lovelace"},
		"nothing was to be billed":     {prices: free, archive: true},
		"a last draft, and it is held": {prices: priced, units: 100_000_000, want: "Ada Lovelace", invoice: "draft Ada Lovelace"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			planstest.Declare(t, w.store, "api")
			w.plan("pro", 0, c.prices)
			planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
			id := w.customer("acme", "pro")
			w.bought("acme")
			w.clock("2026-01-10T00:00:00Z")
			if c.units > 0 {
				w.hit("acme", "api", c.units)
			}
			if c.archive {
				w.check(w.store.ArchiveCustomer(t.Context(), "acme"))
				w.clock("2026-02-10T00:00:00Z")
			}
			_, err := w.store.EraseCustomer(t.Context(), "acme")
			w.check(err)
			w.workOff()
			if got := w.buyer(id); got != c.want {
				t.Errorf("the account's buyer is %q, want %q", got, c.want)
			}
			invoice := ""
			for _, i := range w.stored(id) {
				invoice += fmt.Sprintf("%s %s", i.Status, i.Buyer.Name)
			}
			if invoice != c.invoice {
				t.Errorf("invoices: %q, want %q", invoice, c.invoice)
			}
		})
	}
}

// An invoice that takes the place of an erased customer's has its buyer, and then the account
// forgets it again.
func TestTheReissueOfAnErasedCustomersInvoice(t *testing.T) {
	w := newWorld(t)
	planstest.Declare(t, w.store, "api")
	w.plan("pro", 2000, `[]`)
	planstest.SetClock(t, w.store, "clock", "2026-01-01T00:00:00Z")
	id := w.customer("acme", "pro")
	w.bought("acme")
	w.clock("2026-01-10T00:00:00Z")
	_, err := w.store.EraseCustomer(t.Context(), "acme")
	w.check(err)
	w.workOff()
	_, err = w.invoices.Void(t.Context(), w.stored(id)[0].ID, "a test", true)
	w.check(err)
	w.workOff()
	all := make(map[string]string)
	for _, i := range w.stored(id) {
		all[i.Status] = i.Buyer.Name
	}
	if len(all) != 2 || all[billing.StatusFinalized] != "Ada Lovelace" || w.buyer(id) != "" {
		t.Errorf("%v, and the account has %q", all, w.buyer(id))
	}
	if _, err := w.store.GetCustomer(t.Context(), "acme"); err != plans.ErrUnknownCustomer { //nolint:errorlint // it is the very one
		t.Error(err)
	}
}
