package document

import (
	"math"
	"testing"
	"time"

	"quotad/internal/billing"
	"quotad/internal/calendar"
	"quotad/internal/plans"
)

func TestAmountsForPeople(t *testing.T) {
	for _, c := range []struct {
		minor    int64
		currency string
		want     string
	}{
		{0, "EUR", "€0.00"},
		{5, "EUR", "€0.05"},
		{-5, "EUR", "−€0.05"},
		{99999, "USD", "$999.99"},
		{100000, "GBP", "£1,000.00"},
		{-123456789, "EUR", "−€1,234,567.89"},
		{0, "JPY", "¥0"},
		{999, "JPY", "¥999"},
		{1000, "ISK", "ISK 1,000"},
		{-1000000, "ISK", "−ISK 1,000,000"},
		{1234, "KWD", "KWD 1.234"},
		{1234567, "KWD", "KWD 1,234.567"},
		{12345678, "CLF", "CLF 1,234.5678"},
		{1e15 - 1, "EUR", "€9,999,999,999,999.99"},
		{math.MinInt64, "EUR", "−€92,233,720,368,547,758.08"},
	} {
		if got := amountsIn(c.currency).money(c.minor); got != c.want {
			t.Errorf("%d %s: %q, want %q", c.minor, c.currency, got, c.want)
		}
	}
}

// A PDF has all letters that amounts are written with.
func TestAmountsArePrintable(t *testing.T) {
	for _, currency := range []string{"USD", "EUR", "GBP", "JPY", "INR", "KRW", "CHF", "ILS", "NGN"} {
		if got := amountsIn(currency).money(-1); printable(got) != got {
			t.Errorf("%q is printed as %q", got, printable(got))
		}
	}
}

func TestExactAmountsForPeople(t *testing.T) {
	for _, c := range []struct {
		decimal  string
		currency string
		want     string
	}{
		{"500", "EUR", "€500.00"},
		{"43.45670", "EUR", "€43.4567"},
		{"1234567.5", "EUR", "€1,234,567.50"},
		{"0.000001", "EUR", "€0.000001"},
		{"00012.50", "EUR", "€12.50"},
		{"000", "EUR", "€0.00"},
		{"1234", "JPY", "¥1,234"},
		{"7.0", "JPY", "¥7"},
		{"0.5", "JPY", "¥0.5"},
		{"100", "JPY", "¥100"},
	} {
		if got := amountsIn(c.currency).exact(c.decimal); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.decimal, c.currency, got, c.want)
		}
	}
}

func TestSpans(t *testing.T) {
	berlin, err := calendar.Location("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) int64 {
		instant, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return instant.UnixMicro()
	}
	for _, c := range []struct {
		from, to string
		zone     *time.Location
		want     string
	}{
		{"2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", time.UTC, "1 Mar – 31 Mar 2026"},
		{"2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", time.UTC, "1 Mar 2026"},
		{"2025-12-15T00:00:00Z", "2026-01-15T00:00:00Z", time.UTC, "15 Dec 2025 – 14 Jan 2026"},
		{"2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z", berlin, "1 Mar – 31 Mar 2026"}, // over the change of clocks
		{"2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z", time.UTC, "28 Feb 2026, 23:00 – 31 Mar 2026, 22:00"},
		{"2026-03-01T00:00:00Z", "2026-03-20T14:30:00Z", time.UTC, "1 Mar 2026, 00:00 – 20 Mar 2026, 14:30"},
		{"2026-03-09T11:00:00Z", "2026-03-09T11:00:00Z", time.UTC, "9 Mar 2026"},
	} {
		if got := (dates{c.zone}).span(at(c.from), at(c.to)); got != c.want {
			t.Errorf("[%s, %s): %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func TestPrintableLetters(t *testing.T) {
	for _, r := range []rune{box, '€', '−'} {
		if faceOf(r) != faces[0] {
			t.Errorf("the font lacks %c, which every invoice may need", r)
		}
	}
	for text, want := range map[string]string{
		"Straße, Ακμή, Привет, 5 €": "Straße, Ακμή, Привет, 5 €",
		"e\u0301tat":                "état",
		"a\u00a0b\tc":               "a b c",
		"−5 × – … ·":                "−5 × – … ·",
		"東京":                        "東京",
		"नमस्ते":                    "□□□□□□",
		"ok 👍":                      "ok □",
		"a\u202eb":                  "ab",
		"":                          "",
		"\xff":                      "\ufffd",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestPapersKnowEachLevel demands that a paper says which level was billed.
func TestPapersKnowEachLevel(t *testing.T) {
	for _, by := range plans.LevelsBy() {
		line := billing.Line{Level: billing.LineLevel{By: by, Exact: "3.500000"}}
		if words := amountsIn("EUR").held(&line); words[0] == "" {
			t.Errorf("a paper has no words for the level by %s", by)
		}
	}
}
