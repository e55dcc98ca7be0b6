package assembly_test

import (
	"fmt"
	"strings"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
)

// Each rule of billing about credits, on an invoice of 100 for the days 0 to 30. applied is
// "id amount", in order.
func TestCredits(t *testing.T) {
	credit := func(id string, left int64, change func(*billing.Credit)) billing.Credit {
		c := billing.Credit{ID: id, Kind: billing.CreditPromotional, AmountMinor: left, LeftMinor: left, Currency: "USD", Priority: 50}
		if change != nil {
			change(&c)
		}
		return c
	}
	expires := func(at int64) func(*billing.Credit) { return func(c *billing.Credit) { c.ExpiresAt = &at } }
	seq := func(n int64) func(*billing.Credit) { return func(c *billing.Credit) { c.Seq = n } }
	for name, rule := range map[string]struct {
		credits []billing.Credit
		applied string
	}{
		"a credit pays what is due":         {[]billing.Credit{credit("a", 30, nil)}, "a -30"},
		"a credit pays no more than is due": {[]billing.Credit{credit("a", 130, nil), credit("b", 1, nil)}, "a -100"},
		"what is left counts, not the amount": {[]billing.Credit{
			credit("a", 30, func(c *billing.Credit) { c.LeftMinor = 10 }),
			credit("b", 30, func(c *billing.Credit) { c.LeftMinor = 0 }),
		}, "a -10"},
		"of another currency it does not count":   {[]billing.Credit{credit("a", 30, func(c *billing.Credit) { c.Currency = "EUR" })}, ""},
		"one that expires at period_end does not": {[]billing.Credit{credit("a", 30, expires(30*day)), credit("b", 30, expires(30*day-1))}, ""},
		"one that expires later counts":           {[]billing.Credit{credit("a", 30, expires(30*day+1))}, "a -30"},
		"the lowest priority is first": {[]billing.Credit{
			credit("a", 30, func(c *billing.Credit) { c.Priority = 51 }), credit("b", 90, func(c *billing.Credit) { c.Kind = billing.CreditPaid }),
		}, "b -90,a -10"},
		"then the earliest expiry": {[]billing.Credit{credit("a", 30, nil), credit("b", 30, expires(50*day)), credit("c", 30, expires(40*day))}, "c -30,b -30,a -30"},
		"then promotional before paid": {[]billing.Credit{
			credit("a", 30, func(c *billing.Credit) { c.Kind = billing.CreditPaid }),
			credit("b", 30, func(c *billing.Credit) { c.Kind, c.Seq = billing.CreditCarried, 1 }),
			credit("c", 30, seq(9)),
		}, "c -30,a -30,b -30"},
		"then age": {[]billing.Credit{credit("a", 30, seq(3)), credit("b", 30, seq(2)), credit("c", 60, seq(1))}, "c -60,b -30,a -10"},
	} {
		t.Run(name, func(t *testing.T) {
			in := charged(t, 100)
			in.Credits = rule.credits
			r := assemble(t, in)
			same(t, "applied", entries(r.Applied, billing.EntryApplied), rule.applied)
		})
	}
}

func entries(list []assembly.Entry, kind string) string {
	var each []string
	for _, e := range list {
		if e.Kind == kind {
			each = append(each, fmt.Sprintf("%s %d", e.Credit, e.AmountMinor))
		}
	}
	return strings.Join(each, ",")
}

func TestAnOpeningComparesItsStart(t *testing.T) {
	in := opening(terms(version(t, based(100, "advance")), 0, 30))
	in.Credits = []billing.Credit{
		{ID: "expired", LeftMinor: 10, Currency: "USD", ExpiresAt: ptr(int64(0))},
		{ID: "counts", LeftMinor: 10, Currency: "USD", ExpiresAt: ptr(int64(1))},
	}
	r := assemble(t, in)
	same(t, "applied", entries(r.Applied, billing.EntryApplied), "counts -10")
	same(t, "sums", sums(&r.Invoice), "100 + 0 = 100 - 10 = 90")
}

func TestCreditsPayTaxToo(t *testing.T) {
	in := charged(t, 100)
	in.Account.Taxes = vat("19", false)
	in.Credits = []billing.Credit{{ID: "a", LeftMinor: 500, Currency: "USD"}}
	same(t, "sums", sums(made(t, in)), "100 + 19 = 119 - 119 = 0")
}

func TestCreditsPayNothingOfANegativeTotal(t *testing.T) {
	in := charged(t, -100)
	in.Credits = []billing.Credit{{ID: "a", LeftMinor: 500, Currency: "USD"}}
	same(t, "sums", sums(made(t, in)), "-100 + 0 = -100 - 0 = 0")
}

func TestExpired(t *testing.T) {
	credits := []billing.Credit{
		{ID: "never", LeftMinor: 1},
		{ID: "spent", ExpiresAt: ptr(5 * day)},
		{ID: "five", LeftMinor: 7, ExpiresAt: ptr(5 * day)},
		{ID: "ten", LeftMinor: 8, ExpiresAt: ptr(10 * day)},
	}
	for _, c := range []struct {
		at     int64
		booked string
	}{
		{5*day - 1, ""},
		{5 * day, "five -7"},
		{10*day - 1, "five -7"},
		{10 * day, "five -7,ten -8"},
		{30 * day, "five -7,ten -8"},
	} {
		same(t, fmt.Sprint(c), entries(assembly.Expired(credits, c.at), billing.EntryExpired), c.booked)
	}
}
