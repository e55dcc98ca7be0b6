package document_test

import (
	"bytes"
	"encoding/csv"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"quotad/internal/billing"
	"quotad/internal/billing/document"
)

// records are a CSV's rows as maps from column to cell.
func records(t *testing.T, content []byte, err error) []map[string]string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, row := range rows[1:] {
		record := map[string]string{}
		for i, name := range rows[0] {
			record[name] = row[i]
		}
		out = append(out, record)
	}
	return out
}

func ofLines(t *testing.T, inv billing.Invoice) []map[string]string {
	t.Helper()
	content, err := document.CSV(&inv)
	return records(t, content, err)
}

func TestNoCellIsAFormula(t *testing.T) {
	for text, want := range map[string]string{
		"=1+1":     "'=1+1",
		"+1":       "'+1",
		"-1":       "'-1",
		"@SUM(A1)": "'@SUM(A1)",
		"\t=1":     "'\t'=1",
		"\r=1":     "''=1", // lines end in CRLF, so the writer drops other CRs

		"\tx":                     "'\tx",
		"\rx":                     "'x",
		"\nx":                     "'\nx",
		"  =1":                    "'  =1",
		"\u00a0=1":                "'\u00a0=1",
		`"=1`:                     `'"=1`,
		"＝1":                      "'＝1",
		"＋1":                      "'＋1",
		"－1":                      "'－1",
		"＠x":                      "'＠x",
		"﹦1":                      "'﹦1",
		"\ufeff=1":                "'\ufeff=1",
		"\u200b+1":                "'\u200b+1",
		"\u200c\u200d\u2060-1":    "'\u200c\u200d\u2060-1",
		"\u00ad@x":                "'\u00ad@x",
		"\u200e\u202a\u2066=1":    "'\u200e\u202a\u2066=1",
		"\u180e\u034f\u3164=1":    "'\u180e\u034f\u3164=1",
		"\ufe0f\U000e0100=1":      "'\ufe0f\U000e0100=1",
		"\x00\x1f\x7f\u0085=1":    "'\x00\x1f\x7f\u0085=1",
		"\u2800\u2028=1":          "'\u2800\u2028=1",
		"a;\ufeff=1":              "a;'\ufeff=1",
		"\ufeff \"\u200b＝1":       "'\ufeff \"\u200b＝1",
		"\ufeffplain":             "\ufeffplain",
		"a\u200b=1":               "a\u200b=1",
		"a;=cmd|' /C calc'!A0":    "a;'=cmd|' /C calc'!A0",
		"a;\"=1":                  "a;'\"=1",
		"a; -1":                   "a;' -1",
		"a\t=1":                   "a\t'=1",
		"a\n=1":                   "a\n'=1",
		"":                        "",
		"plain":                   "plain",
		"a=1":                     "a=1",
		"API calls: -5 × request": "API calls: -5 × request",
		"a, -b":                   "a, -b",
		"1-2":                     "1-2",
		"Ακμή; Ε.Π.Ε.":            "Ακμή; Ε.Π.Ε.",
	} {
		inv := sample()
		inv.Lines[0].Description, inv.Lines[0].Meter, inv.CustomerKey, inv.Number = text, text, text, text
		inv.Buyer.Name, inv.Buyer.TaxID, inv.Buyer.Country, inv.Seller.Name, inv.Reference, inv.VoidReason, inv.Held = text, text, text, text, text, text, text
		inv.OrderReference, inv.Seller.Country, inv.Seller.TaxID, inv.Seller.Registration = text, text, text, text
		line := ofLines(t, inv)[0]
		content, err := document.InvoicesCSV([]billing.Invoice{inv})
		row := records(t, content, err)[0]
		cells := map[string]string{
			"description": line["description"], "meter": line["meter"], "customer of a line": line["customer"],
			"number of a line": line["number"],
		}
		for _, name := range []string{
			"number", "customer", "buyer_name", "buyer_tax_id", "buyer_country", "seller_name", "reference", "void_reason",
			"held", "order_reference", "seller_country", "seller_tax_id", "seller_registration",
		} {
			cells[name] = row[name]
		}
		for name, got := range cells {
			if got != want {
				t.Errorf("%q as %s is the cell %q, want %q", text, name, got, want)
			}
		}
	}
}

func TestLinesAreRows(t *testing.T) {
	inv := sample()
	rows := ofLines(t, inv)
	if len(rows) != len(inv.Lines) {
		t.Fatalf("%d rows of %d lines", len(rows), len(inv.Lines))
	}
	for name, want := range map[string]string{
		"invoice": inv.ID, "number": "Q-17", "status": "finalized", "customer": "acme", "n": "7", "kind": "correction", "meter": "requests",
		"description": "Correction of invoice Q-12, API calls: -5,000 × request", "from": "2026-02-01T00:00:00Z", "to": "2026-03-01T00:00:00Z",
		"quantity": "-5000", "included": "0", "plan_version": "3", "currency": "EUR", "amount_minor": "-250", "amount": "-2.50",
		"of_invoice": "0b1f4a0e-7a6f-4f3b-8f0d-8c9d1f2b7a10", "billed_before_quantity": "20000", "billed_before_minor": "1000", "billed_before": "10.00",
		"credited_before_minor": "0", "credited_before": "0.00",
	} {
		if rows[6][name] != want {
			t.Errorf("%s is %q, want %q", name, rows[6][name], want)
		}
	}
	for name, want := range map[string]string{
		"unit_price": "", "package_size": "", "package_price": "", "applied": "",
		"tiers": "up to 500000: 500000 × 0.001 = 500; up to 1000000: 500000 × 0.0005 = 250; above 1000000: 134567 × 0.0003 + 3.0866 = 43.45670",
	} {
		if rows[1][name] != want {
			t.Errorf("%s is %q, want %q", name, rows[1][name], want)
		}
	}
	for _, n := range []int{0, 1, 2, 200} {
		if rows := ofLines(t, long(n)); len(rows) != n {
			t.Errorf("%d rows of %d lines", len(rows), n)
		}
	}
}

func TestInvoicesAreRows(t *testing.T) {
	names, list := []string{}, []billing.Invoice{}
	for name, inv := range samples() {
		names, list = append(names, name), append(list, inv)
	}
	content, err := document.InvoicesCSV(list)
	rows := records(t, content, err)
	if len(rows) != len(list) {
		t.Fatalf("%d rows of %d invoices", len(rows), len(list))
	}
	row := rows[slices.Index(names, "credit-note")]
	for name, want := range map[string]string{
		"number": "Q-18", "kind": "credit_note", "status": "paid", "currency": "EUR", "period_start": "2026-03-01T00:00:00Z", "period_end": "2026-04-01T00:00:00Z",
		"subtotal_minor": "-60000", "tax_minor": "-11400", "total_minor": "-71400", "credits_minor": "0", "amount_due_minor": "0",
		"subtotal": "-600.00", "tax": "-114.00", "total": "-714.00", "credits": "0.00", "amount_due": "0.00",
		"finalized_at": "2026-04-01T01:00:00Z", "due_at": "", "seller": "default", "of": sample().ID,
	} {
		if row[name] != want {
			t.Errorf("%s is %q, want %q", name, row[name], want)
		}
	}
	for of, want := range map[string][4]string{ // paid_at, credited, open_minor, open
		"open": {"", "0.00", "241479", "2414.79"}, "less": {"", "714.00", "170079", "1700.79"}, "paid": {"2026-04-09T00:00:00Z", "0.00", "0", "0.00"},
		"partly": {"", "0.00", "100000", "1000.00"}, "given-back": {"2026-04-09T00:00:00Z", "714.00", "0", "0.00"}, "draft": {"", "0.00", "0", "0.00"},
		"nothing-open": {"", "2414.79", "0", "0.00"}, "void": {"", "0.00", "0", "0.00"}, "credited": {"", "2514.79", "0", "0.00"},
	} {
		row := rows[slices.Index(names, of)]
		if got := [4]string{row["paid_at"], row["credited"], row["open_minor"], row["open"]}; got != want {
			t.Errorf("%s: %q, want %q", of, got, want)
		}
	}
	empty, err := document.InvoicesCSV(nil)
	if err != nil || bytes.Count(empty, []byte("\r\n")) != 1 {
		t.Errorf("no invoices are %q, %v: want the header alone", empty, err)
	}
}

// CSV is data: it has the lines that papers leave out, and prices as they were written.
func TestLinesSayTheirPriceInCSV(t *testing.T) {
	rows := ofLines(t, priced())
	for n, want := range []string{
		"calls|1040|1000|0.05|||||200", "idle|0|0|0.05|||||0", "mails|2001|0||1000|2|||600", "texts|3|2||1000|2|||200",
		"space|30|0||||up to 100: 30 × 0.1 + 5 = 8.0000||800",
		"least|0|0|0.05||||minimum|500", "most|1000000|0|0.05||||maximum|350", "inside|7|1000|0.000001|||||0", "given|-7|0|1|||||0", "before|12|0||||||24",
		"mails|5000|0||1000|2|||1000",
	} {
		var got []string
		for _, name := range []string{"meter", "quantity", "included", "unit_price", "package_size", "package_price", "tiers", "applied", "amount_minor"} {
			got = append(got, rows[n][name])
		}
		if strings.Join(got, "|") != want {
			t.Errorf("line %d: %q, want %q", n+1, strings.Join(got, "|"), want)
		}
	}
	inv := priced()
	inv.Lines[4].Tiers = []billing.TierLine{{UpTo: new(int64(5)), Quantity: "5", Amount: "1", UnitPrice: "0.2"}, {Quantity: "2", Amount: "2", UnitPrice: "1"}}
	if got, want := ofLines(t, inv)[4]["tiers"], "up to 5: 5 × 0.2 = 1; above 5: 2 × 1 = 2"; got != want {
		t.Errorf("tiers are %q, want %q", got, want)
	}
	inv.Lines[4].Tiers = inv.Lines[4].Tiers[1:]
	if got, want := ofLines(t, inv)[4]["tiers"], "all: 2 × 1 = 2"; got != want {
		t.Errorf("a volume price without bounds is %q, want %q", got, want)
	}
}

func TestAmountsHaveTheDigitsOfTheirCurrency(t *testing.T) {
	for _, c := range []struct{ currency, least, decimal string }{
		{"JPY", "-1", "999999999999999"},
		{"EUR", "-0.01", "9999999999999.99"},
		{"KWD", "-0.001", "999999999999.999"},
		{"CLF", "-0.0001", "99999999999.9999"},
	} {
		inv := sample()
		inv.Currency = c.currency
		inv.Lines[0].AmountMinor, inv.Lines[1].AmountMinor, inv.Lines[1].Quantity = -1, 1e15-1, math.MaxInt64
		rows := ofLines(t, inv)
		if rows[0]["amount"] != c.least || rows[0]["amount_minor"] != "-1" || rows[1]["amount"] != c.decimal {
			t.Errorf("%s: %v, %v", c.currency, rows[0], rows[1])
		}
		if rows[1]["quantity"] != strconv.FormatInt(math.MaxInt64, 10) {
			t.Errorf("quantity %s", rows[1]["quantity"])
		}
	}
}
