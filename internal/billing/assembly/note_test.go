package assembly_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/quota/model"
)

func ask(to string, lines ...assembly.NoteLine) assembly.NoteRequest {
	return assembly.NoteRequest{Lines: lines, Reason: "outage", To: to}
}

// stands are the lines of an invoice that no other one corrects or gives back.
func stands(inv *billing.Invoice, earlier []billing.Invoice) map[int]assembly.Standing {
	all := make(map[int]assembly.Standing)
	for _, l := range inv.Lines {
		s := assembly.Standing{AmountMinor: l.AmountMinor}
		for _, note := range earlier {
			for _, noted := range note.Lines {
				if noted.OfLine == l.N {
					s.NotedMinor -= noted.AmountMinor
				}
			}
		}
		all[l.N] = s
	}
	return all
}

func note(t rapid.TB, inv billing.Invoice, earlier []billing.Invoice, request assembly.NoteRequest) assembly.Note {
	t.Helper()
	n, err := assembly.CreditNote(&inv, earlier, stands(&inv, earlier), nil, request)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestANoteIsNegativeAndPaidAndSaysWhatItCredits(t *testing.T) {
	inv := invoice(t, vat("19", false), 1000, 500)
	inv.Seller.Prefix, inv.Buyer.Name = "Q-", "They"
	n := note(t, inv, nil, ask(assembly.Outside, assembly.NoteLine{N: 2, AmountMinor: 300}))
	made := n.Invoice
	same(t, "sums", sums(&made), "-300 + -57 = -357 - 0 = 0")
	same(t, "taxes", taxesOf(&made), "19 -300 -57")
	same(t, "lines", lines(&made), "1 charge 0-0 -300")
	if made.Kind != billing.KindCreditNote || made.Status != billing.StatusPaid || made.Of != "of" || made.Lines[0].OfInvoice != "of" ||
		made.Lines[0].OfLine != 2 || made.Buyer.Name != "They" || made.Currency != "USD" || made.PeriodEnd != inv.PeriodEnd {
		t.Errorf("%+v", made)
	}
	same(t, "description", made.Lines[0].Description, "Credit for line 2, Setup (outage)")
	if n.Whole || n.Money.CarriedMinor != 0 {
		t.Errorf("%+v", n)
	}
	numbered := finalized(t, made, 7, 40*day)
	if numbered.Number != "Q-7" || numbered.Status != billing.StatusPaid || numbered.DueAt != nil || *numbered.FinalizedAt != 40*day {
		t.Errorf("%+v", numbered)
	}
}

// The tax of a note is T(credited so far) − T(before): 3 × 0.05 is taxed 0.01, 0.01, 0.01 and
// not thrice what 0.05 alone is taxed.
func TestTheTaxOfNotesAddsUp(t *testing.T) {
	inv := invoice(t, vat("19", false), 15) // tax 2.85, rounded 3
	var earlier []billing.Invoice
	for i, tax := range []int64{-1, -1, -1} { // T(5) = 0.95 → 1, T(10) = 1.9 → 2, T(15) = 3
		n := note(t, inv, earlier, ask(assembly.Outside, assembly.NoteLine{N: 1, AmountMinor: 5}))
		same(t, fmt.Sprint("tax of note ", i), n.Invoice.TaxMinor, tax)
		same(t, "whole", n.Whole, i == 2)
		earlier = append(earlier, n.Invoice)
	}
	inv = invoice(t, vat("50", false), 3) // tax 1.5, rounded 2
	first := note(t, inv, nil, ask(assembly.Outside, assembly.NoteLine{N: 1, AmountMinor: 1}))
	same(t, "T(1)", first.Invoice.TaxMinor, -1)
	second := note(t, inv, []billing.Invoice{first.Invoice}, ask(assembly.Outside, assembly.NoteLine{N: 1, AmountMinor: 1}))
	same(t, "T(2) - T(1)", second.Invoice.TaxMinor, 0)
}

func TestNotesOfInclusiveTaxAreGross(t *testing.T) {
	inv := invoice(t, vat("19", true), 1190)
	n := note(t, inv, nil, ask(assembly.Outside, assembly.NoteLine{N: 1, AmountMinor: 1190}))
	same(t, "sums", sums(&n.Invoice), "-1190 + -190 = -1190 - 0 = 0")
	same(t, "taxes", taxesOf(&n.Invoice), "19 -1000 -190")
	same(t, "inclusive", n.Invoice.Taxes[0].Inclusive, true)
	same(t, "whole", n.Whole, true)
}

func TestCreditsOfPaidInvoicesAreCarriedWithTheirTax(t *testing.T) {
	inv := invoice(t, vat("19", false), 1000)
	inv.SetPayments([]billing.Payment{{N: 1, Kind: billing.PaymentMoney, AmountMinor: 1190}})
	inv.Status = inv.StatusNow()
	n := note(t, inv, nil, ask(assembly.ToCredits, assembly.NoteLine{N: 1, AmountMinor: 100}))
	same(t, "carried", n.Money.CarriedMinor, int64(119))
	n = note(t, inv, nil, ask(assembly.Outside, assembly.NoteLine{N: 1, AmountMinor: 100}))
	same(t, "carried", n.Money.CarriedMinor, int64(0))
}

func TestNothingIsLeftWhenTheTotalIsCredited(t *testing.T) {
	inv := with(invoice(t, vat("19", false), 1000, -400, 500), billing.StatusPaid)
	n := note(t, inv, nil, ask(assembly.ToCredits, assembly.NoteLine{N: 1, AmountMinor: 1000}, assembly.NoteLine{N: 3, AmountMinor: 100}))
	same(t, "total", -n.Invoice.TotalMinor, inv.TotalMinor)
	same(t, "whole", n.Whole, true)
}

// What is refused, and as what.
func TestRefusedNotes(t *testing.T) {
	unpaid := invoice(t, vat("19", false), 1000, -400, 500)
	one := func(n int, amount int64) []assembly.NoteLine { return []assembly.NoteLine{{N: n, AmountMinor: amount}} }
	earlier := []billing.Invoice{note(t, unpaid, nil, ask(assembly.Outside, one(3, 200)...)).Invoice}
	negative := with(invoice(t, nil, 100, -300), billing.StatusPaid)
	for name, c := range map[string]struct {
		of      billing.Invoice
		earlier []billing.Invoice
		lines   []assembly.NoteLine
		to      string
		want    string // of ErrState, ErrTooMuch, or the field
	}{
		"a draft":                        {with(unpaid, billing.StatusDraft), nil, one(1, 1), assembly.Outside, "state"},
		"a void one":                     {with(unpaid, billing.StatusVoid), nil, one(1, 1), assembly.Outside, "state"},
		"one that is credited":           {with(unpaid, billing.StatusCredited), nil, one(1, 1), assembly.Outside, "state"},
		"a note":                         {earlier[0], nil, one(1, 1), assembly.Outside, "state"},
		"more than the line":             {unpaid, nil, one(1, 1001), assembly.Outside, "too much"},
		"more than is left of the line":  {unpaid, earlier, one(3, 301), assembly.Outside, "too much"},
		"more than is left of the total": {unpaid, earlier, one(1, 901), assembly.Outside, "too much"},
		"two lines above the total":      {unpaid, nil, append(one(1, 1000), one(3, 101)...), assembly.Outside, "too much"},
		"a negative line":                {unpaid, nil, one(2, 1), assembly.Outside, "too much"},
		"what came to less than 0":       {negative, nil, one(1, 1), assembly.Outside, "too much"},
		"an unknown line":                {unpaid, nil, one(4, 1), assembly.Outside, "lines[0].n"},
		"a line twice":                   {unpaid, nil, append(one(1, 1), one(1, 1)...), assembly.Outside, "lines[1].n"},
		"an amount of 0":                 {unpaid, nil, one(1, 0), assembly.Outside, "lines[0].amount_minor"},
		"a negative amount":              {unpaid, nil, one(1, -1), assembly.Outside, "lines[0].amount_minor"},
		"a huge amount":                  {unpaid, nil, one(1, 1e15), assembly.Outside, "lines[0].amount_minor"},
		"no line":                        {unpaid, nil, nil, assembly.Outside, "lines"},
		"to nowhere":                     {unpaid, nil, one(1, 1), "", "to"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := assembly.CreditNote(&c.of, c.earlier, stands(&c.of, c.earlier), nil, ask(c.to, c.lines...))
			var bad model.FieldErrors
			switch {
			case c.want == "state":
				if !errors.Is(err, billing.ErrState) {
					t.Error(err)
				}
			case c.want == "too much":
				if !errors.Is(err, billing.ErrTooMuch) {
					t.Error(err)
				}
			case !errors.As(err, &bad) || bad[0].Field != c.want:
				t.Errorf("%v, want a fault of %s", err, c.want)
			}
		})
	}
	// And just what is left is credited.
	n := note(t, unpaid, earlier, ask(assembly.Outside, one(1, 900)...))
	same(t, "whole", n.Whole, true)
}

// Less is owed first. Beyond that the seller pays out, or carries on, at most what came from outside, in
// money and in credits that were paid for, and each note as much as the ones before it left. What is more
// returns to the credits that paid, the last one first.
func TestWhereTheMoneyOfANoteGoes(t *testing.T) {
	payment := func(amount int64) billing.Payment {
		return billing.Payment{N: 1, Kind: billing.PaymentMoney, AmountMinor: amount}
	}
	gift := assembly.Applied{Credit: "gift", Kind: billing.CreditPromotional, Minor: 300}
	bought := assembly.Applied{Credit: "bought", Kind: billing.CreditPaid, Minor: 200}
	rest := assembly.Applied{Credit: "rest", Kind: billing.CreditCarried, Payment: 2, Minor: 100}
	for name, c := range map[string]struct {
		due     int64 // of a total of 1000
		paid    []billing.Payment
		applied []assembly.Applied
		earlier []billing.NoteMoney // of notes of 100
		amount  int64
		to      string
		want    billing.NoteMoney
		back    string
	}{
		"open":             {due: 1000, amount: 400, to: assembly.Outside, want: billing.NoteMoney{OpenMinor: 400}},
		"open, to credits": {due: 1000, amount: 400, to: assembly.ToCredits, want: billing.NoteMoney{OpenMinor: 400}},
		"partly open": {
			due: 1000, paid: []billing.Payment{payment(700)}, amount: 400, to: assembly.Outside,
			want: billing.NoteMoney{OpenMinor: 300, OutsideMinor: 100},
		},
		"partly open, to credits": {
			due: 1000, paid: []billing.Payment{payment(700)}, amount: 400, to: assembly.ToCredits,
			want: billing.NoteMoney{OpenMinor: 300, CarriedMinor: 100},
		},
		"paid": {
			due: 1000, paid: []billing.Payment{payment(1000)}, amount: 400, to: assembly.Outside,
			want: billing.NoteMoney{OutsideMinor: 400},
		},
		"paid by credits": {
			applied: []assembly.Applied{gift, bought}, due: 500, paid: []billing.Payment{payment(500)}, amount: 900,
			to: assembly.Outside, want: billing.NoteMoney{OutsideMinor: 700, ReturnedMinor: 200}, back: "gift 0 200",
		},
		"the last comes first": {
			applied: []assembly.Applied{gift, bought, rest}, due: 500, paid: []billing.Payment{
				payment(400),
				{N: 2, Kind: billing.PaymentCredits, AmountMinor: 100},
			}, amount: 1000, to: assembly.Outside,
			want: billing.NoteMoney{OutsideMinor: 600, ReturnedMinor: 400}, back: "rest 2 100, gift 0 300",
		},
		"after another note": {
			applied: []assembly.Applied{gift, bought}, due: 500, paid: []billing.Payment{payment(500)},
			earlier: []billing.NoteMoney{{OutsideMinor: 100}, {OutsideMinor: 100}}, amount: 600, to: assembly.Outside,
			want: billing.NoteMoney{OutsideMinor: 500, ReturnedMinor: 100}, back: "gift 0 100",
		},
		"after one to credits": {
			applied: []assembly.Applied{gift, bought}, due: 500, paid: []billing.Payment{payment(500)},
			earlier: []billing.NoteMoney{{CarriedMinor: 100}, {OutsideMinor: 100}}, amount: 600, to: assembly.Outside,
			want: billing.NoteMoney{OutsideMinor: 500, ReturnedMinor: 100}, back: "gift 0 100",
		},
		"to credits after one outside": {
			applied: []assembly.Applied{gift, bought}, due: 500, paid: []billing.Payment{payment(500)},
			earlier: []billing.NoteMoney{{CarriedMinor: 100}, {OutsideMinor: 100}}, amount: 600, to: assembly.ToCredits,
			want: billing.NoteMoney{CarriedMinor: 500, ReturnedMinor: 100}, back: "gift 0 100",
		},
		"a gift alone": {
			applied: []assembly.Applied{gift}, paid: []billing.Payment{}, amount: 300, to: assembly.Outside,
			want: billing.NoteMoney{ReturnedMinor: 300}, back: "gift 0 300",
		},
		"a gift alone, to credits": {
			applied: []assembly.Applied{gift}, paid: []billing.Payment{}, amount: 300, to: assembly.ToCredits,
			want: billing.NoteMoney{ReturnedMinor: 300}, back: "gift 0 300",
		},
		"paid by credits, to credits": {
			applied: []assembly.Applied{gift, bought}, due: 500, paid: []billing.Payment{payment(500)}, amount: 900,
			to: assembly.ToCredits, want: billing.NoteMoney{CarriedMinor: 700, ReturnedMinor: 200}, back: "gift 0 200",
		},
		"a payment was reversed": {
			applied: []assembly.Applied{gift}, due: 700, paid: []billing.Payment{{
				N: 1, Kind: billing.PaymentMoney,
				AmountMinor: 700, ReversedAt: new(int64),
			}}, amount: 800, to: assembly.Outside, want: billing.NoteMoney{OpenMinor: 700, ReturnedMinor: 100},
			back: "gift 0 100",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inv := invoice(t, nil, 1000)
			inv.CreditsMinor, inv.AmountDueMinor = 1000-c.due, c.due
			inv.SetPayments(c.paid)
			var earlier []billing.Invoice
			for _, money := range c.earlier {
				n := note(t, with(inv, billing.StatusPaid), earlier, ask(assembly.Outside, assembly.NoteLine{N: 1, AmountMinor: 100})).Invoice
				n.Money = &money
				earlier, inv.CreditedMinor = append(earlier, n), inv.CreditedMinor+100
			}
			inv.Status = inv.StatusNow()
			n, err := assembly.CreditNote(&inv, earlier, stands(&inv, earlier), c.applied, ask(c.to, assembly.NoteLine{N: 1, AmountMinor: c.amount}))
			if err != nil {
				t.Fatal(err)
			}
			same(t, "money", n.Money, c.want)
			var back []string
			for _, a := range n.Returned {
				back = append(back, fmt.Sprint(a.Credit, " ", a.Payment, " ", a.Minor))
			}
			same(t, "returned", strings.Join(back, ", "), c.back)
		})
	}
}
