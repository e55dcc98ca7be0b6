package document

import (
	"bytes"
	"encoding/csv"
	"regexp"
	"strconv"
	"strings"
	"time"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

var lineHeader = []string{
	"invoice", "number", "status", "customer", "n", "kind", "meter", "description", "from", "to",
	"quantity", "included", "plan_version", "currency", "amount_minor", "amount", "of_invoice",
	"unit_price", "package_size", "package_price", "tiers", "applied", "level_by", "level",
	"part_from", "part_to", "part_of_from", "part_of_to", "part", "whole_minor", "whole",
	"billed_before_quantity", "billed_before_minor", "billed_before", "credited_before_minor", "credited_before",
}

// CSV returns the lines of an invoice as CSV (RFC 4180), one row for each line below a header. amount_minor
// is in minor units and amount in major units. Instants are RFC 3339 in UTC. An amount is the line's own, so
// it excludes an exclusive tax.
func CSV(inv *billing.Invoice) ([]byte, error) {
	exponent, _ := plans.Exponent(inv.Currency)
	rows := make([][]string, 0, 1+len(inv.Lines))
	rows = append(rows, lineHeader)
	for i := range inv.Lines {
		l := &inv.Lines[i]
		row := []string{
			cell(inv.ID), cell(inv.Number), inv.Status, cell(inv.CustomerKey), strconv.Itoa(l.N), l.Kind, cell(l.Meter), cell(l.Description), instant(&l.From),
			instant(&l.To),
			number(l.Quantity), number(l.Included), strconv.Itoa(l.PlanVersion), inv.Currency, number(l.AmountMinor), rating.Format(l.AmountMinor, exponent),
			cell(l.Corrects()),
			l.UnitPrice, aboveZero(l.PackageSize), l.PackagePrice, tierCell(l.Tiers), l.Applied, l.Level.By, l.Level.Exact,
		}
		rows = append(rows, append(append(row, partCells(l, exponent)...), beforeCells(l.Before, exponent)...))
	}
	return written(rows)
}

// partCells returns the cells for a line's part of a whole period and for the price of the whole.
func partCells(l *billing.Line, exponent int) []string {
	cells := make([]string, 7)
	if p := l.Part; p != nil {
		for i, at := range []int64{p.From, p.To, p.OfFrom, p.OfTo} {
			cells[i] = instant(&at)
		}
		cells[4] = partText(p, l.Level.By == "")
	}
	if l.WholeMinor != nil {
		cells[5], cells[6] = number(*l.WholeMinor), rating.Format(*l.WholeMinor, exponent)
	}
	return cells
}

// beforeCells returns the cells for the quantity and amount billed before a correction, and for the amount
// that credit notes credited.
func beforeCells(b *billing.Before, exponent int) []string {
	if b == nil {
		return make([]string, 5)
	}
	return []string{
		number(b.Quantity), number(b.AmountMinor), rating.Format(b.AmountMinor, exponent),
		number(b.CreditedMinor), rating.Format(b.CreditedMinor, exponent),
	}
}

// tierCell formats the tiers of a line for one cell: "up to 100: 30 × 0.1 + 5 = 8; above 100: …".
func tierCell(of []billing.TierLine) string {
	var b strings.Builder
	last := "all" // the range of a tier without a bound
	for i, t := range of {
		if i > 0 {
			b.WriteString("; ")
		}
		if t.UpTo != nil {
			b.WriteString("up to " + number(*t.UpTo))
			last = "above " + number(*t.UpTo)
		} else {
			b.WriteString(last)
		}
		b.WriteString(": " + string(t.Quantity) + " × " + t.UnitPrice)
		if t.FlatPrice != nil {
			b.WriteString(" + " + *t.FlatPrice)
		}
		b.WriteString(" = " + t.Amount)
	}
	return b.String()
}

var invoiceHeader = []string{
	"invoice", "number", "kind", "status", "customer", "currency", "period_start", "period_end", "price_version",
	"subtotal_minor", "tax_minor", "total_minor", "credits_minor", "amount_due_minor",
	"subtotal", "tax", "total", "credits", "amount_due",
	"finalized_at", "due_at", "seller", "seller_name", "buyer_name", "buyer_country", "buyer_tax_id", "held", "of", "reference", "void_reason",
	"reason", "test_clock", "paid_at", "credited_minor", "credited", "open_minor", "open",
	"order_reference", "seller_country", "seller_tax_id", "seller_registration",
}

// InvoicesCSV returns a list of invoices as CSV, one row for each invoice below a header. Columns ending in
// _minor are in minor units, and the columns without the suffix are in major units. credited is the sum of
// the credit notes, and open the amount still to be paid.
func InvoicesCSV(list []billing.Invoice) ([]byte, error) {
	rows := make([][]string, 0, 1+len(list))
	rows = append(rows, invoiceHeader)
	for i := range list {
		inv := &list[i]
		exponent, _ := plans.Exponent(inv.Currency)
		row := []string{
			cell(inv.ID), cell(inv.Number), inv.Kind, inv.Status, cell(inv.CustomerKey), inv.Currency, instant(&inv.PeriodStart), instant(&inv.PeriodEnd),
			strconv.Itoa(inv.PriceVersion),
		}
		amounts := []int64{inv.SubtotalMinor, inv.TaxMinor, inv.TotalMinor, inv.CreditsMinor, inv.AmountDueMinor}
		for _, minor := range amounts {
			row = append(row, number(minor))
		}
		for _, minor := range amounts {
			row = append(row, rating.Format(minor, exponent))
		}
		rows = append(rows, append(row,
			instant(inv.FinalizedAt), instant(inv.DueAt), cell(inv.Seller.Key), cell(inv.Seller.Name), cell(inv.Buyer.Name), cell(inv.Buyer.Country),
			cell(inv.Buyer.TaxID),
			cell(inv.Held), cell(inv.Of), cell(inv.Reference), cell(inv.VoidReason),
			cell(inv.Reason), cell(inv.TestClock), instant(inv.PaidAt),
			number(inv.CreditedMinor), rating.Format(inv.CreditedMinor, exponent), number(inv.OpenMinor()), rating.Format(inv.OpenMinor(), exponent),
			cell(inv.OrderReference), cell(inv.Seller.Country), cell(inv.Seller.TaxID), cell(inv.Seller.Registration),
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

// formula matches the start of a formula in a spreadsheet. A formula begins with a sign at the start of a
// cell. The sign may have its full width or a small form, and may follow quotes, spaces and invisible
// characters. If the list separator is a semicolon or a tab, as in much of Europe, a cell also begins after
// that separator.
//
// Invisible characters are controls, format characters such as the byte order mark, zero-width spaces and
// joiners, and Unicode's other ignorable characters: joiners and fillers of scripts, and variation selectors.
// An empty braille cell looks like a space, too.
var formula = regexp.MustCompile(`(^|[;\t\r\n])` +
	`([\s\p{Z}\p{C}"\x{034F}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{2800}\x{3164}\x{FE00}-\x{FE0F}\x{FFA0}\x{E0000}-\x{E0FFF}]*)` +
	`([=+\-@＝＋－＠﹢﹣﹦﹫])`)

// cell returns a user's text for a cell. An apostrophe before the start of a formula makes a spreadsheet
// treat the cell as text. Numbers such as -5 do not pass through cell and stay numbers.
func cell(text string) string {
	if text != "" && (text[0] == '\t' || text[0] == '\r' || text[0] == '\n') {
		text = "'" + text
	}
	return formula.ReplaceAllString(text, "$1'$2$3")
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// aboveZero formats n, or returns "" if n is 0.
func aboveZero(n int64) string {
	if n == 0 {
		return ""
	}
	return number(n)
}

// instant formats an instant in µs, or returns "" if at is nil.
func instant(at *int64) string {
	if at == nil {
		return ""
	}
	return time.UnixMicro(*at).UTC().Format(time.RFC3339Nano)
}
