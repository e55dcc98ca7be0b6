package document_test

import (
	stdhtml "html"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/billing/document"
	"quotad/internal/plans"
	"quotad/internal/testkit/oracle"
)

// What a paper says of a line adds up to its amount: units and packages times their prices, or the
// tiers, rounded once. Where it does not, the paper says that a minimum or a maximum was applied.
func TestPapersAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		currency := rapid.SampledFrom([]string{"EUR", "JPY", "KWD", "CLF"}).Draw(t, "currency")
		terms := drawTerms(t, currency)
		line, _, err := terms.UsageLine(plans.Meter{Key: "m"}, rapid.Int64Range(-5, 200).Draw(t, "quantity"))
		if err != nil {
			t.Fatal(err)
		}
		line.N = 1
		inv := billing.Invoice{
			ID: "i", Currency: currency, Status: billing.StatusDraft, PeriodStart: line.From, PeriodEnd: line.To, Lines: []billing.Line{line},
			Totals: billing.Totals{SubtotalMinor: line.AmountMinor, TotalMinor: line.AmountMinor},
		}
		page, err := document.HTML(&inv, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, rows, _ := strings.Cut(string(page), "<tbody>")
		rows, _, _ = strings.Cut(rows, `<table class="totals">`)
		text := stdhtml.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(rows, "|"))
		if line.Quantity == 0 && line.AmountMinor == 0 {
			if !strings.Contains(text, "No lines") {
				t.Fatalf("a line of nothing is printed: %s", text)
			}
			return
		}
		checkSum(t, text, currency, &line)
	})
}

// What a paper says of a correction comes to its amount, after whatever was billed before and whatever credit notes took of that.
func TestPapersOfCorrectionsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		currency := rapid.SampledFrom([]string{"EUR", "JPY", "KWD", "CLF"}).Draw(t, "currency")
		exponent, _ := plans.Exponent(currency)
		terms := drawTerms(t, currency)
		before := rapid.Int64Range(-5, 200).Draw(t, "before")
		billed, _, err := terms.UsageLine(plans.Meter{Key: "m"}, before)
		if err != nil {
			t.Fatal(err)
		}
		line, _, err := assembly.CorrectionLine(assembly.Correction{
			Meter: "m", Of: terms, OfNumber: "Q-1", Counted: before, Now: rapid.Int64Range(-5, 200).Draw(t, "now"), BilledMinor: billed.AmountMinor,
			NotedMinor: rapid.Int64Range(0, billed.AmountMinor).Draw(t, "noted"),
		}, plans.Meter{Key: "m"})
		if err != nil {
			t.Fatal(err)
		}
		line.N = 1
		page, err := document.HTML(&billing.Invoice{ID: "i", Currency: currency, PeriodStart: line.From, PeriodEnd: line.To, Lines: []billing.Line{line}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		switch got, err := oracle.OnPaper(string(page), exponent); {
		case err != nil:
			t.Fatal(err)
		case len(got) != 1, got[0].Printed != line.AmountMinor, got[0].Minor != line.AmountMinor:
			t.Fatalf("the paper comes to %+v, and the amount is %d", got, line.AmountMinor)
		}
	})
}

var (
	timesPrice = regexp.MustCompile(`([0-9,]+)(?: packages? of ([0-9,]+))? × (?:€|¥|KWD |CLF )([0-9.,]+)(?: and (?:€|¥|KWD |CLF )([0-9.,]+) flat)?`)
	isHeld     = regexp.MustCompile(`(Minimum|Maximum) of [^|]* applied`)
)

// checkSum adds up what a printed line says.
func checkSum(t *rapid.T, text, currency string, line *billing.Line) {
	sum, units := new(big.Rat), new(big.Rat)
	for _, m := range timesPrice.FindAllStringSubmatch(text, -1) {
		sum.Add(sum, new(big.Rat).Mul(read(m[1]), read(m[3])))
		if m[4] != "" {
			sum.Add(sum, read(m[4]))
		}
		if m[2] == "" {
			units.Add(units, read(m[1]))
			continue
		}
		// The packages hold all units, and one package less would not.
		begun := new(big.Rat).Mul(read(m[1]), read(m[2]))
		if over := new(big.Rat).Sub(begun, overage(line)); over.Sign() < 0 || over.Cmp(read(m[2])) >= 0 {
			t.Fatalf("%s packages of %s for %s units: %s", m[1], m[2], overage(line), text)
		}
		units = overage(line)
	}
	if line.UnitPrice == "" && line.PackageSize == 0 && len(line.Tiers) == 0 {
		units = overage(line) // no unit falls in a tier
	}
	if units.Cmp(overage(line)) != 0 {
		t.Fatalf("%s units are priced, and there are %s beyond the included ones: %s", units, overage(line), text)
	}
	exponent, _ := plans.Exponent(currency)
	for range exponent {
		sum.Mul(sum, big.NewRat(10, 1))
	}
	sum.Add(sum, big.NewRat(1, 2))
	computed := new(big.Int).Quo(sum.Num(), sum.Denom()).Int64()
	held := ""
	if m := isHeld.FindStringSubmatch(text); m != nil {
		held = strings.ToLower(m[1])
	}
	switch {
	case held != line.Applied,
		held == "" && computed != line.AmountMinor,
		held == billing.AppliedMaximum && computed <= line.AmountMinor,
		held == billing.AppliedMinimum && computed >= line.AmountMinor:
		t.Fatalf("the paper adds up to %d %s, and the amount is %d: %s", computed, held, line.AmountMinor, text)
	}
}

// overage is the units beyond the included ones.
func overage(l *billing.Line) *big.Rat {
	return new(big.Rat).SetInt64(max(0, max(0, l.Quantity)-l.Included))
}

// read is a number as papers write it.
func read(text string) *big.Rat {
	r, ok := new(big.Rat).SetString(strings.ReplaceAll(text, ",", ""))
	if !ok {
		panic("not a number: " + text)
	}
	return r
}

// drawTerms are a period, whole or cut, with any price of the meter m.
func drawTerms(t *rapid.T, currency string) assembly.Terms {
	decimal := rapid.StringMatching(`0{0,2}[0-9]{1,3}(\.[0-9]{1,6})?`)
	p := plans.Price{Meter: "m", Model: rapid.SampledFrom(plans.PriceModels()).Draw(t, "model")}
	p.Included = rapid.SampledFrom([]int64{0, 0, 1, 40}).Draw(t, "included")
	if rapid.Bool().Draw(t, "has minimum") {
		p.MinimumMinor = new(rapid.Int64Range(0, 5000).Draw(t, "minimum"))
	}
	if rapid.Bool().Draw(t, "has maximum") {
		least := int64(0)
		if p.MinimumMinor != nil {
			least = *p.MinimumMinor
		}
		p.MaximumMinor = new(rapid.Int64Range(least, least+9999).Draw(t, "maximum"))
	}
	switch p.Model {
	case "per_unit":
		p.UnitPrice = new(decimal.Draw(t, "unit"))
	case "package":
		p.PackageSize, p.PackagePrice = new(rapid.Int64Range(1, 20).Draw(t, "size")), new(decimal.Draw(t, "package"))
	case "graduated", "volume":
		end := int64(0)
		for i := range rapid.IntRange(1, 4).Draw(t, "tiers") {
			if i > 0 {
				end += rapid.Int64Range(1, 60).Draw(t, "wide")
				p.Tiers[i-1].UpTo = new(end)
			}
			tier := plans.Tier{UnitPrice: decimal.Draw(t, "unit")}
			if rapid.Bool().Draw(t, "has flat") {
				tier.FlatPrice = new(decimal.Draw(t, "flat"))
			}
			p.Tiers = append(p.Tiers, tier)
		}
	default:
		t.Fatalf("draw the fields of %s here", p.Model)
	}
	plan, err := assembly.Compile("p", 1, &plans.PlanInput{Currency: currency, Interval: "month", IntervalCount: 1, Prices: []plans.Price{p}})
	if err != nil {
		t.Fatal(err)
	}
	from := rapid.Int64Range(0, 29).Draw(t, "from")
	to := rapid.Int64Range(from+1, 30).Draw(t, "to")
	return assembly.Terms{Plan: plan, Period: billing.Period{
		Start: march + from*day, End: march + to*day, FullStart: march, FullEnd: march + 30*day, KnownEnd: march + to*day, Version: 1,
	}}
}
