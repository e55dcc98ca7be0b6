package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"quotad/client"
	"quotad/internal/plans"
)

const (
	// maxItems is the maximum number of items on an invoice at Stripe.
	maxItems = 250
	// spareItems is the number of items that are reserved for reductions of the invoice while it is a draft.
	spareItems = 20
	// maxText is the maximum length of an item's description. Stripe accepts more, but pages of text help
	// nobody.
	maxText = 500
)

// Currencies for which Stripe's number of decimals differs from ISO 4217. Stripe uses no decimals for MGA.
// Amounts in ISK and UGX have no decimals in fact, but Stripe requires two, which must be 00.
var stripeDecimals = map[string]int{"MGA": 0, "ISK": 2, "UGX": 2}

// money converts between quotad's minor units, which follow ISO 4217, and Stripe's.
type money struct {
	currency string
	times    int64 // Stripe's amount is quotad's amount · times / over
	over     int64
	step     int64 // Stripe's amounts are multiples of step
}

// moneyOf returns the conversion for a currency of ISO 4217. It does not check whether Stripe supports the
// currency, because Stripe itself reports that.
func moneyOf(currency string) (money, error) {
	ours, ok := plans.Exponent(currency)
	if !ok {
		return money{}, person("currency", "", "the bridge does not know the minor unit of %s: collect this invoice by hand", currency)
	}
	theirs, special := stripeDecimals[currency]
	if !special {
		theirs = ours
	}
	m := money{currency: currency, times: 1, over: 1, step: 1}
	for ; theirs > ours; theirs-- {
		m.times *= 10
	}
	for ; ours > theirs; ours-- {
		m.over *= 10
	}
	if theirs == 3 {
		m.step = 10 // the last of the three decimals must be 0
	}
	return m, nil
}

// stripe converts quotad's minor units to an amount at Stripe. ok is false if Stripe cannot represent the
// amount.
func (m money) stripe(minor int64) (amount int64, ok bool) {
	if minor%m.over != 0 || minor > math.MaxInt64/m.times || minor < -(math.MaxInt64/m.times) {
		return 0, false
	}
	amount = minor / m.over * m.times
	return amount, amount%m.step == 0
}

// quotad converts an amount at Stripe to quotad's minor units. ok is false if quotad cannot represent the
// amount.
func (m money) quotad(amount int64) (minor int64, ok bool) {
	if amount%m.times != 0 || amount > math.MaxInt64/m.over || amount < -(math.MaxInt64/m.over) {
		return 0, false
	}
	return amount / m.times * m.over, true
}

// item is a line item of an invoice at Stripe. key is unique within the invoice and is stored in the item's
// metadata.
type item struct {
	key, text string
	minor     int64 // in quotad's minor units
	from, to  int64 // Unix seconds; 0 means that the item has no period
}

// itemsOf returns the items that were due when the invoice was finalized: its lines, taxes and credits. They
// never change, and their sum is amount_due_minor.
func itemsOf(q *client.Invoice) []item {
	var items []item
	for _, l := range q.Lines {
		items = append(items, item{
			key: strconv.Itoa(l.N), text: lineText(&l), minor: l.AmountMinor, from: l.From.Unix(), to: l.To.Unix(),
		})
	}
	if q.TotalMinor != q.SubtotalMinor { // exclusive taxes; the lines include inclusive taxes
		for i, t := range q.Taxes {
			items = append(items, item{key: fmt.Sprintf("tax-%d", i+1), text: short(fmt.Sprintf("%s %s %%", t.Name, t.Percent), maxText), minor: t.TaxMinor})
		}
	}
	if q.CreditsMinor != 0 {
		items = append(items, item{key: "credits", text: "Credits", minor: -q.CreditsMinor})
	}
	return fitting(q, items)
}

func lineText(l *client.Line) string {
	text := l.Description
	if l.Kind == "usage" && l.Level == nil {
		text += ": " + strconv.FormatInt(l.Quantity, 10)
	} else if l.Level != nil {
		text += ": " + l.Level.Exact
	}
	return short(text, maxText)
}

// fitting merges the items that exceed Stripe's maximum into one item. If Stripe's decimals cannot represent one
// of the items, fitting merges all items, because their sum may be representable.
func fitting(q *client.Invoice, items []item) []item {
	whole := item{key: "sum", text: "Invoice " + number(q), minor: sum(items), from: q.PeriodStart.Unix(), to: q.PeriodEnd.Unix()}
	if m, err := moneyOf(q.Currency); err == nil {
		for _, i := range items {
			if _, ok := m.stripe(i.minor); !ok {
				return []item{whole}
			}
		}
	}
	if most := maxItems - spareItems; len(items) > most {
		rest := items[most-1:]
		whole.key, whole.text, whole.minor = "rest", fmt.Sprintf("%d more lines of invoice %s", len(rest), number(q)), sum(rest)
		items = append(items[:most-1:most-1], whole)
	}
	return items
}

// settledKey is the prefix of the keys of items for amounts that were paid or credited before Stripe finalized
// the invoice.
const settledKey = "settled-"

func sum(items []item) (minor int64) {
	for _, i := range items {
		minor += i.minor
	}
	return minor
}

func number(q *client.Invoice) string {
	if q.Number == nil {
		return ""
	}
	return *q.Number
}

// short truncates a text to at most most characters.
func short(text string, most int) string {
	text = strings.ToValidUTF8(text, "�")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
