package oracle

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"
)

// Shown is an invoice as the API shows it, as far as the contract says what it must be.
type Shown struct {
	Kind           string      `json:"kind"`
	Status         string      `json:"status"`
	Currency       string      `json:"currency"`
	PeriodStart    time.Time   `json:"period_start"`
	PeriodEnd      time.Time   `json:"period_end"`
	PriceVersion   int         `json:"price_version"`
	Lines          []ShownLine `json:"lines"`
	SubtotalMinor  int64       `json:"subtotal_minor"`
	Taxes          []Tax       `json:"taxes"`
	TaxMinor       int64       `json:"tax_minor"`
	TotalMinor     int64       `json:"total_minor"`
	CreditsMinor   int64       `json:"credits_minor"`
	AmountDueMinor int64       `json:"amount_due_minor"`
	PaidMinor      int64       `json:"paid_minor"`
	OpenMinor      int64       `json:"open_minor"`
	Seller         ShownSeller `json:"seller"`
	DueAt          *time.Time  `json:"due_at"`
	Of             string      `json:"-"` // what the invoice is that it credits or replaces
}

// ShownSeller is who sends it.
type ShownSeller struct {
	Key string `json:"key"`
}

// ShownLine is a line of it.
type ShownLine struct {
	Kind        string      `json:"kind"`
	Meter       string      `json:"meter"`
	From        time.Time   `json:"from"`
	To          time.Time   `json:"to"`
	Quantity    int64       `json:"quantity"`
	Included    int64       `json:"included"`
	PlanVersion int         `json:"plan_version"`
	Tiers       []ShownTier `json:"tiers"`
	AmountMinor int64       `json:"amount_minor"`
	Of          string      `json:"-"`
	Priced
	Applied string      `json:"applied"`
	Level   *ShownLevel `json:"level"`
	Part    *ShownPart  `json:"part"`
	Before  *Before     `json:"billed_before"`
}

// ShownPart is the part [From, To) of a whole [OfFrom, OfTo).
type ShownPart struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	OfFrom time.Time `json:"of_from"`
	OfTo   time.Time `json:"of_to"`
}

func (p *ShownPart) String() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf(" part %s/%s of %s/%s", short(p.From), short(p.To), short(p.OfFrom), short(p.OfTo))
}

// ShownTier is what a tier adds, exactly, in major units.
type ShownTier struct {
	UpTo      *int64          `json:"up_to"`
	Quantity  json.RawMessage `json:"quantity"` // a number, or a string of 6 digits of a level
	Amount    string          `json:"amount"`
	UnitPrice string          `json:"unit_price"`
	FlatPrice string          `json:"flat_price"`
}

// Show is the invoice as it stands.
func (i *Invoice) Show() Shown {
	p := i.Paper
	if i.Status == "draft" {
		p = paper(i.lines(), i.life.Account)
	}
	s := Shown{
		Kind: i.Kind, Status: i.Status, Currency: i.life.Currency, PeriodStart: utc(i.Start), PeriodEnd: utc(i.End),
		PriceVersion: i.period.Version.N, SubtotalMinor: p.Subtotal, Taxes: p.Taxes, TaxMinor: p.Tax, TotalMinor: p.Total,
		CreditsMinor: p.Credits, AmountDueMinor: p.Due, Of: i.of.Name(), Seller: ShownSeller{p.Seller},
	}
	if p.DueAt != nil {
		due := utc(*p.DueAt)
		s.DueAt = &due
	}
	if s.PaidMinor = i.Paid(); i.Status == "finalized" {
		s.OpenMinor = i.Open()
	}
	for _, l := range p.Lines {
		s.Lines = append(s.Lines, show(l))
	}
	return s
}

func show(l Line) ShownLine {
	line := ShownLine{
		l.Kind, l.Meter, utc(l.From), utc(l.To), l.Quantity, l.Included, l.Version, nil, l.Minor, l.Of.Name(), l.Priced, l.Applied, nil, nil, l.Before,
	}
	if s := l.part; s != nil && (s.A != s.S || s.B != s.E) {
		line.Part = &ShownPart{utc(s.A), utc(s.B), utc(s.S), utc(s.E)}
	}
	if l.By != "" {
		line.Level = &ShownLevel{l.By, l.Exact}
	}
	for _, t := range l.Tiers {
		quantity := t.Quantity.RatString()
		if l.By != "" {
			quantity = `"` + t.Quantity.FloatString(6) + `"`
		}
		line.Tiers = append(line.Tiers, ShownTier{t.UpTo, json.RawMessage(quantity), t.Amount.RatString(), t.UnitPrice, t.FlatPrice})
	}
	return line
}

// Name says which of a customer's invoices it is, in words that both sides know; "" for none.
func (i *Invoice) Name() string {
	if i == nil {
		return ""
	}
	return NameOf(i.Kind, utc(i.Start), utc(i.End))
}

// NameOf is Name by the words themselves.
func NameOf(kind string, start, end time.Time) string {
	return kind + " " + short(start) + "/" + short(end)
}

func utc(at int64) time.Time { return time.UnixMicro(at).UTC() }

func short(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999") }

// String is everything of it that counts, a line for each of its lines. What credits will pay of
// a draft is not known yet. Corrections have no order among each other.
func (s Shown) String() string {
	b := new(strings.Builder)
	fmt.Fprintf(b, "%s %s %s by %s of[%s] v%d subtotal %d", NameOf(s.Kind, s.PeriodStart, s.PeriodEnd), s.Status, s.Currency, s.Seller.Key, s.Of,
		s.PriceVersion, s.SubtotalMinor)
	for _, t := range s.Taxes {
		fmt.Fprintf(b, " %s %s%% of %d: %d", t.Name, decimal(t.Percent).RatString(), t.BaseMinor, t.TaxMinor)
	}
	fmt.Fprintf(b, " tax %d total %d", s.TaxMinor, s.TotalMinor)
	if s.Status != "draft" {
		fmt.Fprintf(b, " credits %d due %d paid %d open %d", s.CreditsMinor, s.AmountDueMinor, s.PaidMinor, s.OpenMinor)
	}
	if s.DueAt != nil {
		b.WriteString(" by " + short(*s.DueAt))
	}
	b.WriteString("\n")
	corrections := []string{}
	for n, l := range s.Lines {
		if text := l.String(); l.Kind == "correction" && s.Kind != "credit_note" {
			corrections = append(corrections, text)
		} else {
			fmt.Fprintf(b, "  %d %s\n", n+1, text)
		}
	}
	slices.Sort(corrections)
	for _, text := range corrections {
		fmt.Fprintf(b, "  - %s\n", text)
	}
	return b.String()
}

func (l ShownLine) String() string {
	if l.Kind == "charge" { // of which nobody says from when on it is
		return fmt.Sprintf("charge of[%s] %d", l.Of, l.AmountMinor)
	}
	b := new(strings.Builder)
	fmt.Fprintf(b, "%s %s %s/%s quantity %d included %d v%d amount %d of[%s]", l.Kind, l.Meter, short(l.From), short(l.To), l.Quantity, l.Included,
		l.PlanVersion, l.AmountMinor, l.Of)
	fmt.Fprintf(b, " at %s, %d for %s, %s", l.UnitPrice, l.PackageSize, l.PackagePrice, l.Applied)
	b.WriteString(l.Level.String() + l.Part.String() + l.Before.String())
	for _, t := range l.Tiers {
		upTo := "rest"
		if t.UpTo != nil {
			upTo = fmt.Sprint(*t.UpTo)
		}
		amount, _ := new(big.Rat).SetString(t.Amount)
		fmt.Fprintf(b, " (to %s: %s for %s at %s and %s)", upTo, t.Quantity, amount.RatString(), t.UnitPrice, t.FlatPrice)
	}
	return b.String()
}
