package document_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/billing/document"
	"quotad/internal/calendar"
)

func TestNamesAreEscaped(t *testing.T) {
	const evil = `</title></style><script>alert(1)</script><img src=x onerror='alert(1)'> & "x"`
	inv := sample()
	inv.Number, inv.CustomerKey, inv.Reference, inv.VoidReason, inv.Held, inv.Of, inv.OfNumber = evil, evil, evil, evil, evil, evil, evil
	inv.Buyer = billing.Buyer{Name: evil, Address: []string{evil}, Country: evil, TaxID: evil}
	inv.Seller.Name, inv.Seller.Address, inv.Seller.TaxID = evil, []string{evil}, evil
	inv.Seller.Country, inv.Seller.Registration, inv.Seller.Email, inv.Seller.Payment, inv.Seller.Footer = evil, evil, evil, []string{evil}, []string{evil}
	inv.OrderReference, inv.Notes, inv.Taxes[0].Note = evil, []string{evil}, evil
	inv.Taxes[0].Name = evil
	inv.Lines[0].Description = evil
	inv.Lines[1].Tiers[0].Amount = evil
	for _, status := range []string{billing.StatusDraft, billing.StatusFinalized, billing.StatusVoid} {
		inv.Status = status
		shown := html(t, inv)
		for _, tag := range []string{"<script", "<img"} {
			if strings.Contains(shown, tag) {
				t.Errorf("%s: %s came through", status, tag)
			}
		}
		if strings.Count(shown, "</style>") != 1 || strings.Count(shown, "</title>") != 1 {
			t.Errorf("%s: a name ended an element", status)
		}
		if n := strings.Count(shown, "&lt;script&gt;"); n < 16 {
			t.Errorf("%s: only %d names are shown", status, n)
		}
	}
}

func TestThePolicyAllowsTheStyleAlone(t *testing.T) {
	shown := html(t, sample())
	found := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(shown)
	if found == nil {
		t.Fatal("no style")
	}
	sum := sha256.Sum256([]byte(found[1]))
	if want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(document.HTMLPolicy, "style-src "+want+";") {
		t.Errorf("the policy %s lacks %s", document.HTMLPolicy, want)
	}
	if outside := regexp.MustCompile(`style=|<script|<link|src=|href=|url\(|https?:|\son\w+=`).FindString(shown); outside != "" {
		t.Errorf("the page has %q", outside)
	}
}

// words are what a page says, without tags, a space between.
func words(shown string) string {
	_, body, _ := strings.Cut(shown, "<body>")
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, " ")), " ")
}

func TestKindsAndStatusesSayWhatTheyAre(t *testing.T) {
	list := samples()
	for name, want := range map[string]struct{ has, lacks []string }{
		"open": {
			[]string{
				"Invoice Q-17 Open", "€2,414.79 due by 15 Apr 2026", "Due 15 Apr 2026", "Subtotal €2,113.27", "VAT 19% on €2,113.27 €401.52", "Total €2,514.79",
				"Credits −€100.00", "Amount due €2,414.79",
				"100,000 included", "Up to 500,000 500,000 × €0.001 €500.00", "Above 1,000,000 134,567 × €0.0003 and €3.0866 flat €43.4567", "250 × €0.10 250 €25.00",
				"21 Mar – 31 Mar 2026 −€3.23", "1 Apr – 30 Apr 2026", "15,000 instead of 20,000 15,000 × €0.0005 Less €10.00 billed before −5,000 −€2.50", "10 Mar 2026 €1,200.00",
				"Ακμή Εμπορική Α.Ε.", "Tax ID EL999999999", "Period 1 Mar – 31 Mar 2026", "Dates are those of the time zone UTC.",
			},
			[]string{"draft", "void", "replaces", "Paid"},
		},
		"priced": {
			[]string{
				"1 Meter calls Quantity 1,040 1,000 included 40 × €0.05 1,040 €2.00", "3 packages of 1,000 × €2.00", "2 included 1 package of 1,000 × €2.00",
				"Up to 100 30 × €0.10 and €5.00 flat €8.00",
				"6 Meter least Quantity 0 0 × €0.05 Minimum of €5.00 applied 0 €5.00", "1,000,000 × €0.05 Maximum of €3.50 applied",
				"1,000 included 0 × €0.000001 7 €0.00", "9 Meter given Quantity −7 0 × €1.00 −7 €0.00",
				"10 Meter before Quantity 12 12 €0.24", "7,001 instead of 2,001 8 packages of 1,000 × €2.00 Less €6.00 billed before 5,000 €10.00",
			},
			[]string{"idle", "2 Meter"},
		},
		"draft": {
			[]string{"Draft invoice Draft", "€2,414.79 so far", "This is a draft.", "Amount so far €2,414.79"},
			[]string{"Q-17", "Due", "Amount due", "Open"},
		},
		"upcoming": {[]string{"Upcoming invoice"}, []string{"Q-17"}},
		"held":     {[]string{"Draft invoice Held", "This invoice is held and cannot be sent yet: an amount of 10¹⁵"}, nil},
		"paid": {[]string{
			"Invoice Q-17 Paid Paid on 9 Apr 2026", "Paid 9 Apr 2026", "Payment SEPA 2026-04-09 / 4711",
			"Credits −€100.00 Paid on 9 Apr 2026 −€2,414.79 Open €0.00",
		}, []string{"due", "Due"}},
		"partly": {[]string{
			"Invoice Q-17 Partly paid €1,000.00 due by 15 Apr 2026", "Payment part 1",
			"Credits −€100.00 Paid on 5 Apr 2026 −€1,000.00 Credits applied on 8 Apr 2026 −€414.79 Amount due €1,000.00",
		}, []string{"bounced", "€0.09"}},
		"in-many-parts": {[]string{"Credits −€100.00 Paid −€13.00 Amount due €2,401.79"}, nil},
		"void": {
			[]string{"Invoice Q-17 Void", "Nothing to pay", "This invoice is void.", "Reason: Sent to the wrong company"},
			[]string{"due", "Due", "Open"},
		},
		"credited": {[]string{
			"Invoice Q-17 Credited Nothing to pay", "Credit notes cover all of this invoice.",
			"Credit notes −€2,514.79 Given back €100.00 Open €0.00",
		}, []string{"due", "Due"}},
		"reissue":      {[]string{"This invoice replaces invoice Q-9."}, nil},
		"less":         {[]string{"€1,700.79 due by 15 Apr 2026", "Total €2,514.79", "Credits −€100.00", "Credit notes −€714.00", "Amount due €1,700.79"}, nil},
		"less-paid":    {[]string{"Credits −€100.00 Paid on 9 Apr 2026 −€1,700.79 Credit notes −€714.00 Open €0.00"}, []string{"due", "Due", "Given back"}},
		"given-back":   {[]string{"Credits −€100.00 Paid on 9 Apr 2026 −€2,414.79 Credit notes −€714.00 Given back €714.00 Open €0.00"}, []string{"due", "Due"}},
		"nothing-open": {[]string{"Invoice Q-17 Settled Nothing to pay", "Credit notes −€2,414.79 Open €0.00"}, []string{"due", "Due"}},
		"beyond": {
			[]string{"Settled Nothing to pay", "Credits −€100.00 Credit notes −€2,450.00 Given back €35.21 Open €0.00"},
			[]string{"due", "Due", "Paid"},
		},
		"inclusive": {
			[]string{"Total €2,113.27 Includes State tax 6.25% on €1,950.00 €121.88 Includes City tax 2.125% on €1,950.00 €41.39 Amount due €2,113.27"},
			[]string{"Subtotal"},
		},
		"opening": {[]string{"Total €49.00 Amount due €49.00"}, []string{"Subtotal", "Credits"}},
		"credit-note": {[]string{
			"Credit note Q-18", "€714.00 credited", "This note credits invoice Q-17.", "VAT 19% on −€600.00 −€114.00",
			"Total credited −€714.00",
		}, []string{"Amount due", "Paid", "Open"}},
		"papers": {[]string{
			"Meterwerk GmbH Torstraße 12 10119 Berlin Germany Tax ID DE123456789 Amtsgericht Charlottenburg, HRB 12345 billing@meterwerk.example",
			"546 24 Θεσσαλονίκη Greece Tax ID", "Order PO 2026/4711",
			"VAT 0% on €2,113.27 Reverse charge: the buyer owes the tax, Article 196 of Directive 2006/112/EC €0.00",
			"How to pay Transfer the amount to Meterwerk GmbH IBAN DE02 1203 0000 0000 2020 51, BIC BYLADEM1001 Notes Cost centre 42 Approved by Eleni Papadopoulou",
			"Managing directors: Ada Müller, Jürgen Groß Thank you for your trust. Dates are those",
		}, nil},
		"papers-note":   {[]string{"Order PO 2026/4711", "Notes Cost centre 42", "Thank you for your trust."}, []string{"How to pay"}},
		"negative":      {[]string{"Total −€2.50 Kept as credit €2.50 Open €0.00"}, []string{"due", "Due"}},
		"without-lines": {[]string{"No lines", "To acme", "Open €0.00"}, []string{"due", "Due"}},
	} {
		got := words(html(t, list[name]))
		for _, text := range want.has {
			if !strings.Contains(got, text) {
				t.Errorf("%s lacks %q: %s", name, text, got)
			}
		}
		for _, text := range want.lacks {
			if strings.Contains(got, text) {
				t.Errorf("%s has %q", name, text)
			}
		}
	}
}

func TestEachLineIsARow(t *testing.T) {
	for _, n := range []int{1, 2, 30, 200} {
		shown := html(t, long(n))
		if got := strings.Count(shown, `<td class="no">`); got != n {
			t.Errorf("%d rows of %d lines", got, n)
		}
		for _, i := range []int{1, (n + 1) / 2, n} {
			if !strings.Contains(shown, fmt.Sprintf("Charge %d of %d", i, n)) {
				t.Errorf("charge %d of %d is missing", i, n)
			}
		}
	}
}

func TestPagesHaveTheDigitsOfTheCurrency(t *testing.T) {
	for currency, want := range map[string]string{
		"JPY": "¥241,479", "EUR": "€2,414.79", "KWD": "KWD 241.479", "CLF": "CLF 24.1479",
	} {
		inv := sample()
		inv.Currency = currency
		if got := words(html(t, inv)); !strings.Contains(got, "Amount due "+want+" ") {
			t.Errorf("%s: %s", want, got)
		}
	}
}

func TestDatesAreThoseOfTheZone(t *testing.T) {
	zone, err := calendar.Location("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	inv := sample()
	inv.PeriodStart, inv.PeriodEnd = march+5*3600e6, march+31*day+4*3600e6
	shown, err := document.HTML(&inv, zone)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"1 Mar – 31 Mar 2026", "31 Mar 2026", "time zone America/New_York."} {
		if !strings.Contains(string(shown), text) {
			t.Errorf("lacks %q", text)
		}
	}
	utc, err := document.HTML(&inv, nil)
	if err != nil || !strings.Contains(string(utc), "1 Mar 2026, 05:00 – 1 Apr 2026, 04:00") {
		t.Errorf("without a zone: %v", err)
	}
}
