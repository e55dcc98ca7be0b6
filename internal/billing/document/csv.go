package document

import (
	"bytes"
	"encoding/csv"
	"regexp"
	"strconv"
	"time"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

var lineHeader = []string{
	"invoice", "number", "status", "customer", "n", "kind", "meter", "description", "from", "to",
	"quantity", "included", "plan_version", "currency", "amount_minor", "amount", "of_invoice",
}

// CSV is the lines of an invoice, a row each below a header, as RFC 4180 has it. amount_minor is
// in minor units and amount in major ones. Instants are RFC 3339 in UTC. An amount is the line's
// own, so an exclusive tax is not in it.
func CSV(inv *billing.Invoice) ([]byte, error) {
	exponent, _ := plans.Exponent(inv.Currency)
	rows := make([][]string, 0, 1+len(inv.Lines))
	rows = append(rows, lineHeader)
	for i := range inv.Lines {
		l := &inv.Lines[i]
		rows = append(rows, []string{
			cell(inv.ID), cell(inv.Number), inv.Status, cell(inv.CustomerKey), strconv.Itoa(l.N), l.Kind, cell(l.Meter), cell(l.Description), instant(&l.From), instant(&l.To),
			number(l.Quantity), number(l.Included), strconv.Itoa(l.PlanVersion), inv.Currency, number(l.AmountMinor), rating.Format(l.AmountMinor, exponent), cell(l.Corrects()),
		})
	}
	return written(rows)
}

var invoiceHeader = []string{
	"invoice", "number", "kind", "status", "customer", "currency", "period_start", "period_end", "price_version",
	"subtotal_minor", "tax_minor", "total_minor", "credits_minor", "amount_due_minor",
	"subtotal", "tax", "total", "credits", "amount_due",
	"finalized_at", "due_at", "seller", "seller_name", "buyer_name", "buyer_country", "buyer_tax_id", "held", "of", "reference", "void_reason",
	"reason", "test_clock",
}

// InvoicesCSV is a list of invoices, a row each below a header. Columns that end in _minor are in
// minor units; those of the same name without it are in major ones.
func InvoicesCSV(list []billing.Invoice) ([]byte, error) {
	rows := make([][]string, 0, 1+len(list))
	rows = append(rows, invoiceHeader)
	for i := range list {
		inv := &list[i]
		exponent, _ := plans.Exponent(inv.Currency)
		row := []string{
			cell(inv.ID), cell(inv.Number), inv.Kind, inv.Status, cell(inv.CustomerKey), inv.Currency, instant(&inv.PeriodStart), instant(&inv.PeriodEnd), strconv.Itoa(inv.PriceVersion),
		}
		amounts := []int64{inv.SubtotalMinor, inv.TaxMinor, inv.TotalMinor, inv.CreditsMinor, inv.AmountDueMinor}
		for _, minor := range amounts {
			row = append(row, number(minor))
		}
		for _, minor := range amounts {
			row = append(row, rating.Format(minor, exponent))
		}
		rows = append(rows, append(row,
			instant(inv.FinalizedAt), instant(inv.DueAt), cell(inv.Seller.Key), cell(inv.Seller.Name), cell(inv.Buyer.Name), cell(inv.Buyer.Country), cell(inv.Buyer.TaxID),
			cell(inv.Held), cell(inv.Of), cell(inv.Reference), cell(inv.VoidReason),
			cell(inv.Reason), cell(inv.TestClock),
		))
	}
	return written(rows)
}

func written(rows [][]string) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	if err := w.WriteAll(rows); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// formula is where a spreadsheet would begin to compute: a sign at the beginning of a cell, also
// behind spaces and quotes, and in its full width. Where the list separator is a semicolon or a
// tab, as in much of Europe, a cell also begins behind one of those.
var formula = regexp.MustCompile(`(^|[;\t\r\n])([\s\p{Z}"]*)([=+\-@＝＋－＠])`)

// cell is a text that people wrote. An apostrophe before what looks like a formula makes a
// spreadsheet take it as text. Numbers are no such cells: -5 stays one.
func cell(text string) string {
	if text != "" && (text[0] == '\t' || text[0] == '\r' || text[0] == '\n') {
		text = "'" + text
	}
	return formula.ReplaceAllString(text, "$1'$2$3")
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// instant is one in µs, or "".
func instant(at *int64) string {
	if at == nil {
		return ""
	}
	return time.UnixMicro(*at).UTC().Format(time.RFC3339Nano)
}
