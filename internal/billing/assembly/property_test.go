package assembly_test

import (
	"errors"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/plans"
)

// drawInput is an input of whatever plan, usage, taxes and credits, whose amounts are small.
func drawInput(t *rapid.T) assembly.Input {
	minor := rapid.Int64Range(0, 100_000)
	plan := version(t, func(in *plans.PlanInput) {
		in.BasePriceMinor, in.MinimumMinor = minor.Draw(t, "base"), minor.Draw(t, "minimum")
		in.BaseIn = rapid.SampledFrom([]string{plans.InArrears, plans.InAdvance}).Draw(t, "base_in")
		if rapid.Bool().Draw(t, "free") {
			in.Prices = nil
		}
	})
	end := rapid.Int64Range(1, month).Draw(t, "end")
	in := period(known(terms(plan, rapid.Int64Range(0, end-1).Draw(t, "start"), end), rapid.Int64Range(end, month).Draw(t, "known")))
	in.Terms.Period.Trial = rapid.Bool().Draw(t, "trial")
	if rapid.Bool().Draw(t, "opening") {
		in.Kind = billing.KindOpening
	}
	if rapid.Bool().Draw(t, "advance") {
		in.Advance = []assembly.Advance{{To: in.Terms.Period.KnownEnd, LeftMinor: minor.Draw(t, "left")}}
	}
	if rapid.Bool().Draw(t, "next") {
		in.Next = ptr(terms(version(t, based(minor.Draw(t, "next base"), plans.InAdvance)), end, month+end))
	}
	units := rapid.Int64Range(-100, 5000)
	in.Usage = map[string]int64{"a": units.Draw(t, "a"), "b": units.Draw(t, "b")}
	for range rapid.IntRange(0, 2).Draw(t, "corrections") {
		in.Corrections = append(in.Corrections, assembly.Correction{
			Meter: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "meter"), Of: terms(version(t, nil), 0, 30), OfInvoice: "i",
			Counted: units.Draw(t, "counted"), Now: units.Draw(t, "now"),
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "charges") {
		in.Charges = append(in.Charges, billing.Charge{Description: "Setup", AmountMinor: rapid.Int64Range(-200_000, 100_000).Draw(t, "charge")})
	}
	in.Account.Taxes = drawTaxes(t)
	in.Credits = rapid.SliceOfN(rapid.Custom(drawCredit), 0, 5).Draw(t, "credits")
	for i := range in.Credits {
		in.Credits[i].ID = string(rune('a' + i))
	}
	return in
}

func drawTaxes(t *rapid.T) []billing.TaxRate {
	inclusive := rapid.Bool().Draw(t, "inclusive")
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) billing.TaxRate {
		return billing.TaxRate{Name: "T", Percent: rapid.SampledFrom([]string{"0", "19", "8.875", "0.000001", "100", "5.5"}).Draw(t, "percent"), Inclusive: inclusive}
	}), 0, 3).Draw(t, "taxes")
}

func drawCredit(t *rapid.T) billing.Credit {
	c := billing.Credit{
		Kind:      rapid.SampledFrom([]string{billing.CreditPromotional, billing.CreditPaid, billing.CreditCarried}).Draw(t, "kind"),
		LeftMinor: rapid.Int64Range(0, 100_000).Draw(t, "left"), Currency: rapid.SampledFrom([]string{"USD", "USD", "EUR"}).Draw(t, "currency"),
		Priority: rapid.IntRange(0, 3).Draw(t, "priority"), Seq: rapid.Int64Range(0, 9).Draw(t, "seq"),
	}
	if rapid.Bool().Draw(t, "expires") {
		c.ExpiresAt = ptr(rapid.Int64Range(0, 40).Draw(t, "expires") * day)
	}
	return c
}

// rank is where a line stands in its invoice.
func rank(l *billing.Line, end int64) int {
	if l.Kind == billing.LineBase && l.From >= end {
		return 4
	}
	return slices.Index([]string{
		billing.LineBase, billing.LineUsage, billing.LineMinimum, billing.LineUnused, "", billing.LineCorrection,
		billing.LineCharge,
	}, l.Kind)
}

func TestWhatHoldsOfEachInvoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		r := assemble(t, in)
		inv := &r.Invoice
		var subtotal, tax int64
		for i, l := range inv.Lines {
			subtotal += l.AmountMinor
			if l.N != i+1 || l.AmountMinor == 0 && l.Kind != billing.LineUsage || l.To < l.From || l.Tiers == nil {
				t.Fatalf("line %+v", l)
			}
			if i > 0 && in.Kind == billing.KindPeriod && rank(&inv.Lines[i-1], inv.PeriodEnd) > rank(&inv.Lines[i], inv.PeriodEnd) {
				t.Fatalf("the order of\n%s", lines(inv))
			}
		}
		exclusive, net := int64(0), inv.SubtotalMinor
		for _, each := range inv.Taxes {
			tax += each.TaxMinor
			if !each.Inclusive {
				exclusive += each.TaxMinor
			} else {
				net = inv.SubtotalMinor - inv.TaxMinor
			}
		}
		for _, each := range inv.Taxes {
			same(t, "base of a tax", each.BaseMinor, net)
		}
		same(t, "Σ lines", subtotal, inv.SubtotalMinor)
		same(t, "Σ taxes", tax, inv.TaxMinor)
		same(t, "total", inv.TotalMinor, inv.SubtotalMinor+exclusive)
		same(t, "due", inv.AmountDueMinor, max(0, inv.TotalMinor)-inv.CreditsMinor)
		same(t, "carried", r.CarriedMinor, max(0, -inv.TotalMinor))
		same(t, "empty", r.Empty, len(inv.Lines) == 0)
		creditsHold(t, in.Credits, &r)
	})
}

// creditsHold: no credit is applied twice or beyond what is left of it, all together not beyond
// the total, and none that counts is left while anything is due.
func creditsHold(t *rapid.T, credits []billing.Credit, r *assembly.Result) {
	inv, applied := &r.Invoice, map[string]int64{}
	for _, e := range r.Applied {
		if applied[e.Credit] != 0 || e.AmountMinor >= 0 || e.Kind != billing.EntryApplied {
			t.Fatalf("entry %+v", e)
		}
		applied[e.Credit] = -e.AmountMinor
	}
	sum := int64(0)
	for _, c := range credits {
		counts := c.Currency == inv.Currency && (c.ExpiresAt == nil || *c.ExpiresAt > assembly.CreditsAt(inv))
		if applied[c.ID] > c.LeftMinor || applied[c.ID] > 0 && !counts {
			t.Fatalf("%d applied of %+v", applied[c.ID], c)
		}
		if counts && inv.AmountDueMinor > 0 && applied[c.ID] < c.LeftMinor {
			t.Fatalf("%d due, and %d of %d applied", inv.AmountDueMinor, applied[c.ID], c.LeftMinor)
		}
		sum += applied[c.ID]
	}
	same(t, "Σ applied", sum, inv.CreditsMinor)
	if inv.AmountDueMinor < 0 {
		t.Fatalf("%d due", inv.AmountDueMinor)
	}
}

// A draft that is assembled again is the same, with its stored lines and what they were made of.
func TestADraftIsAssembledAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		first := assemble(t, in).Invoice
		in.Fixed, in.Corrections, in.Charges, in.Next = first.Lines, nil, nil, nil
		again := assemble(t, in).Invoice
		same(t, "lines", lines(&again), lines(&first))
		same(t, "sums", sums(&again), sums(&first))
	})
}

// drawCuts cuts 30 days at any microseconds: the bounds of the parts, ascending.
func drawCuts(t *rapid.T) []int64 {
	cuts := rapid.SliceOfNDistinct(rapid.Int64Range(1, month*day-1), 0, 6, rapid.ID[int64]).Draw(t, "cuts")
	slices.Sort(cuts)
	return append(append([]int64{0}, cuts...), month*day)
}

func part(plan *assembly.Plan, from, to, knownEnd int64) assembly.Terms {
	return assembly.Terms{Plan: plan, Period: billing.Period{Start: from, End: to, KnownEnd: knownEnd, FullEnd: month * day}}
}

// The parts of a period cost what the whole one costs, be the base before them or after.
func TestPartsCostWhatTheWholeCosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.Int64Range(0, 1e12).Draw(t, "base")
		cuts := drawCuts(t)
		for _, baseIn := range []string{plans.InArrears, plans.InAdvance} {
			plan := version(t, based(base, baseIn))
			sum := assemble(t, opening(part(plan, 0, cuts[1], month*day))).Invoice.SubtotalMinor
			for i := range len(cuts) - 1 {
				in := period(part(plan, cuts[i], cuts[i+1], month*day)) // each part was to last to the end
				if baseIn == plans.InAdvance {
					in.Advance = []assembly.Advance{{From: cuts[i], To: month * day, LeftMinor: base}}
				}
				if i+2 < len(cuts) {
					in.Next = ptr(part(plan, cuts[i+1], cuts[i+2], month*day))
				}
				sum += assemble(t, in).Invoice.SubtotalMinor
			}
			same(t, "base in "+baseIn, sum, base)
		}
		// The same of minimums, and of included units, of which none is lost and none is added.
		plan := version(t, func(in *plans.PlanInput) { in.MinimumMinor = base })
		sum, included := int64(0), int64(0)
		for i := range len(cuts) - 1 {
			inv := assemble(t, period(part(plan, cuts[i], cuts[i+1], cuts[i+1]))).Invoice
			sum += inv.SubtotalMinor
			included += inv.Lines[1].Included
		}
		same(t, "minimum", sum, base)
		same(t, "included", included, 100)
	})
}

// Corrections one after another come to what one correction comes to, and that is what the
// usage line would have been.
func TestCorrectionsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := terms(version(t, func(in *plans.PlanInput) {
			in.Prices[1] = plans.Price{Meter: "a", Model: "volume", Included: 7, Tiers: []plans.Tier{
				{UpTo: ptr(int64(50)), UnitPrice: "0.333"}, {UpTo: ptr(int64(200)), UnitPrice: "0.2", FlatPrice: ptr("1.005")}, {UnitPrice: "0.01"},
			}, MinimumMinor: ptr(int64(300)), MaximumMinor: ptr(int64(3000))}
		}), 3, 20)
		meter := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "meter")
		counts := rapid.SliceOfN(rapid.Int64Range(-50, 3000), 2, 6).Draw(t, "counts")
		usage := func(quantity int64) int64 {
			line, _, err := of.UsageLine(plans.Meter{Key: meter}, quantity)
			if err != nil {
				t.Fatal(err)
			}
			return line.AmountMinor
		}
		correct := func(before, now int64) int64 {
			line, ok, err := assembly.CorrectionLine(assembly.Correction{Meter: meter, Of: of, Counted: before, Now: now, BilledMinor: usage(before)}, plans.Meter{})
			if !ok || err != nil || line.Quantity != now-before {
				t.Fatal(line, ok, err)
			}
			return line.AmountMinor
		}
		sum := int64(0)
		for i := range len(counts) - 1 {
			sum += correct(counts[i], counts[i+1])
		}
		first, last := counts[0], counts[len(counts)-1]
		same(t, "one after another", sum, correct(first, last))
		same(t, "as the usage line", usage(first)+sum, usage(last))
	})
}

// Notes in any splits never exceed what is left of a line or of the total, and are refused
// beyond it. They go on until all is credited, and then add up to the invoice with each tax.
func TestNotesAddUpToTheInvoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := rapid.SliceOfN(rapid.Int64Range(-300, 1000), 1, 5).Filter(func(list []int64) bool {
			sum := int64(0)
			for _, n := range list {
				sum += n
			}
			return sum > 0 && !slices.Contains(list, 0)
		}).Draw(t, "amounts")
		inv := with(invoice(t, drawTaxes(t), amounts...), billing.StatusPaid)
		lineLeft, left := slices.Clone(amounts), inv.SubtotalMinor
		var notes []billing.Invoice
		var total, tax, carried int64
		taxes := make([]int64, len(inv.Taxes))
		for left > 0 {
			var asked []assembly.NoteLine
			sum, fits := int64(0), true
			for i := range amounts {
				if most := max(0, lineLeft[i]) + 1; rapid.Bool().Draw(t, "line") { // may be 1 too much
					amount := rapid.Int64Range((most+2)/3, most).Draw(t, "amount")
					asked = append(asked, assembly.NoteLine{N: i + 1, AmountMinor: amount})
					sum += amount
					fits = fits && amount < most
				}
			}
			if len(asked) == 0 {
				continue
			}
			n, err := assembly.CreditNote(&inv, notes, stands(&inv, notes), nil, ask(assembly.ToCredits, asked...))
			if !fits || sum > left {
				if !errors.Is(err, billing.ErrTooMuch) {
					t.Fatalf("%v of %v: %v", asked, lineLeft, err)
				}
				if n := onlyLeft(lineLeft, left); rapid.Bool().Draw(t, "give up") && n.N > 0 {
					asked, sum = []assembly.NoteLine{n}, n.AmountMinor
				} else {
					continue
				}
				n, err = assembly.CreditNote(&inv, notes, stands(&inv, notes), nil, ask(assembly.ToCredits, asked...))
			}
			if err != nil {
				t.Fatalf("%v of %v, %d: %v", asked, lineLeft, left, err)
			}
			notes = append(notes, n.Invoice)
			for _, line := range asked {
				lineLeft[line.N-1] -= line.AmountMinor
			}
			left -= sum
			for i, each := range n.Invoice.Taxes {
				taxes[i] += each.TaxMinor
			}
			total, tax, carried = total+n.Invoice.TotalMinor, tax+n.Invoice.TaxMinor, carried+n.Money.CarriedMinor
			same(t, "whole", n.Whole, left == 0)
			if -total > inv.TotalMinor {
				t.Fatalf("%d credited of %d", -total, inv.TotalMinor)
			}
		}
		same(t, "Σ totals", -total, inv.TotalMinor)
		same(t, "Σ taxes", -tax, inv.TaxMinor)
		same(t, "Σ carried", carried, inv.TotalMinor)
		for i, each := range inv.Taxes {
			same(t, "Σ tax", -taxes[i], each.TaxMinor)
		}
	})
}

// onlyLeft credits as much of the first line that has anything left as may be credited.
func onlyLeft(lineLeft []int64, left int64) assembly.NoteLine {
	for i, amount := range lineLeft {
		if amount > 0 {
			return assembly.NoteLine{N: i + 1, AmountMinor: min(amount, left)}
		}
	}
	return assembly.NoteLine{}
}

// A second way to what an invoice comes to, in fractions and written from the contract alone.
func TestANaiveInvoice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Int64Range(0, 9999)
		base, minimum, included, units := small.Draw(t, "base"), small.Draw(t, "minimum"), small.Draw(t, "included"), small.Draw(t, "units")
		start := rapid.Int64Range(0, month*day-1).Draw(t, "start")
		end := rapid.Int64Range(start+1, month*day).Draw(t, "end")
		whole := func(n, at int64) *big.Rat { return big.NewRat(n*(at/1000), month*day/1000) } // n·at below 2⁶³
		start, end = start/1000*1000, (end+999)/1000*1000
		cut := func(n int64) int64 { return rounded(whole(n, end)) - rounded(whole(n, start)) }
		free := floor(whole(included, end)) - floor(whole(included, start))

		plan := version(t, func(in *plans.PlanInput) {
			in.BasePriceMinor, in.MinimumMinor = base, minimum
			in.Prices = []plans.Price{{Meter: "a", Model: "per_unit", UnitPrice: ptr("0.0125"), Included: included}}
		})
		in := period(part(plan, start, end, end))
		in.Usage = map[string]int64{"a": units}
		in.Account.Taxes = vat("8.875", false)
		in.Credits = []billing.Credit{{ID: "c", LeftMinor: small.Draw(t, "credit"), Currency: "USD"}}

		subtotal := max(cut(base)+rounded(big.NewRat(125*max(0, units-free), 100)), cut(minimum))
		total := subtotal + rounded(big.NewRat(8875*subtotal, 100_000))
		r := assemble(t, in)
		same(t, "subtotal", r.Invoice.SubtotalMinor, subtotal)
		same(t, "total", r.Invoice.TotalMinor, total)
		same(t, "due", r.Invoice.AmountDueMinor, max(0, total-in.Credits[0].LeftMinor))
	})
}

// rounded is a fraction that is not negative, rounded half up.
func rounded(r *big.Rat) int64 { return floor(new(big.Rat).Add(r, big.NewRat(1, 2))) }

func floor(r *big.Rat) int64 { return new(big.Int).Quo(r.Num(), r.Denom()).Int64() }
