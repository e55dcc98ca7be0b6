package document_test

import (
	"bytes"
	"encoding/csv"
	"math"
	"slices"
	"strconv"
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
		line := ofLines(t, inv)[0]
		content, err := document.InvoicesCSV([]billing.Invoice{inv})
		row := records(t, content, err)[0]
		cells := map[string]string{"description": line["description"], "meter": line["meter"], "customer of a line": line["customer"], "number of a line": line["number"]}
		for _, name := range []string{"number", "customer", "buyer_name", "buyer_tax_id", "buyer_country", "seller_name", "reference", "void_reason", "held"} {
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
		"of_invoice": "0b1f4a0e-7a6f-4f3b-8f0d-8c9d1f2b7a10",
	} {
		if rows[6][name] != want {
			t.Errorf("%s is %q, want %q", name, rows[6][name], want)
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
	empty, err := document.InvoicesCSV(nil)
	if err != nil || bytes.Count(empty, []byte("\r\n")) != 1 {
		t.Errorf("no invoices are %q, %v: want the header alone", empty, err)
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
