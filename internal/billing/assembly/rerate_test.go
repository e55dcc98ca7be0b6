package assembly_test

import (
	"fmt"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/billing/assembly"
	"quotad/internal/plans"
)

// What assembly makes is what rating it again makes: with a base in arrears and in advance, cut
// periods, a minimum, a trial, what a cut gives back, and with what other terms price.
func TestRerateAgrees(t *testing.T) {
	advance := version(t, func(p *plans.PlanInput) { p.BasePriceMinor, p.BaseIn, p.MinimumMinor = 3000, plans.InAdvance, 90_000 })
	arrears := version(t, func(p *plans.PlanInput) { p.BasePriceMinor, p.MinimumMinor = 3000, 50 })
	for name, of := range map[string]assembly.Terms{
		"in advance": terms(advance, 0, 30), "in arrears": terms(arrears, 0, 30), "cut": terms(arrears, 3, 17), "a trial": trial(terms(arrears, 0, 30)),
	} {
		in := everything(t)
		in.Terms = of
		in.Usage = map[string]int64{"a": 1234, "b": 17}
		if of.Plan == advance {
			in.Terms.Period.End = 20 * day
			in.Advance = []assembly.Advance{{To: 30 * day, PlanVersion: advance.Version, LeftMinor: 900}}
		} else {
			in.Advance = nil
		}
		next := terms(advance, 30, 60)
		next.Period.Start, next.Period.FullStart = in.Terms.Period.End, in.Terms.Period.End
		in.Next = &next
		made := assemble(t, in).Invoice
		if got := in.Terms.Rerate(made.Lines); len(got) > 0 {
			t.Errorf("%s: %+v\nof %+v", name, got, made.Lines)
		}
	}
}

// Each line that is not as its terms make it is told.
func TestRerateFinds(t *testing.T) {
	of := terms(version(t, func(p *plans.PlanInput) { p.BasePriceMinor, p.MinimumMinor = 3000, 50_000 }), 0, 30)
	in := period(of)
	in.Usage = map[string]int64{"a": 1234, "b": 17}
	lines := assemble(t, in).Invoice.Lines // base, b, a, minimum
	at := func(kind, meter string) int {
		for n := range lines {
			if lines[n].Kind == kind && lines[n].Meter == meter {
				return n
			}
		}
		t.Fatalf("no line %s %s in %+v", kind, meter, lines)
		return 0
	}
	base, usage, minimum := at(billing.LineBase, ""), at(billing.LineUsage, "a"), at(billing.LineMinimum, "")
	for name, c := range map[string]struct {
		change func(l []billing.Line) []billing.Line
		finds  string // line, meter, expected less found
	}{
		"nothing":              {func(l []billing.Line) []billing.Line { return l }, ""},
		"a base's amount":      {func(l []billing.Line) []billing.Line { l[base].AmountMinor++; return l }, "1  -1"},
		"a base's time":        {func(l []billing.Line) []billing.Line { l[base].To -= 15 * day; l[base].AmountMinor = 1500; return l }, "1  0"},
		"no base":              {func(l []billing.Line) []billing.Line { l[base].Kind = billing.LineCharge; return l }, "0  3000"},
		"a usage's quantity":   {func(l []billing.Line) []billing.Line { l[usage].Quantity++; return l }, fmt.Sprintf("%d a 10", usage+1)},
		"a usage's included":   {func(l []billing.Line) []billing.Line { l[usage].Included++; return l }, fmt.Sprintf("%d a -1", usage+1)},
		"a usage's time":       {func(l []billing.Line) []billing.Line { l[usage].From++; return l }, fmt.Sprintf("%d a 0", usage+1)},
		"another meter":        {func(l []billing.Line) []billing.Line { l[usage].Meter = "c"; return l }, ""},
		"a minimum's amount":   {func(l []billing.Line) []billing.Line { l[minimum].AmountMinor -= 2; return l }, fmt.Sprintf("%d  2", minimum+1)},
		"a minimum is missing": {func(l []billing.Line) []billing.Line { return l[:minimum] }, fmt.Sprintf("0  %d", lines[minimum].AmountMinor)},
		"too much given back": {func(l []billing.Line) []billing.Line {
			return append(l, billing.Line{N: 9, Kind: billing.LineUnused, From: of.Period.End, To: of.Period.End, PlanVersion: of.Plan.Version, AmountMinor: -1})
		}, "9  1"},
	} {
		changed := append([]billing.Line{}, lines...)
		got := of.Rerate(c.change(changed))
		if name == "another meter" {
			if len(got) != 2 || got[0].Meter != "c" || got[1].Meter != "a" || got[1].Line != 0 {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		said := ""
		if len(got) > 0 {
			said = fmt.Sprintf("%d %s %d", got[0].Line, got[0].Meter, got[0].Expected-got[0].Found)
		}
		if said != c.finds || len(got) > 1 {
			t.Errorf("%s: %+v, want %q", name, got, c.finds)
		}
	}
}
