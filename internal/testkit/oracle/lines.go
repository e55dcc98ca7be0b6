package oracle

import (
	"fmt"
	"slices"
)

// An Invoice is one on its way, or on paper.
type Invoice struct {
	Kind       string
	Status     string
	Start, End int64
	Paper      Paper // what it says, once it is finalized

	life        *Life
	period      *Period // that it is for; of a credit note: nil
	holds       *Ahead  // the base in advance that begins after it, or with an opening
	longer      *Ahead  // a base that goes on longer than was known
	extra       bool    // it is of no period, but of what came when billing was over
	onward      bool    // its period's base goes on
	due         int64   // when it is finalized
	charges     []*Charge
	corrections []*Correction
	unused      []Back // whose own invoice became void: what that gave back is here
	applied     []applied
	payments    []*payment
	noted       int64    // what notes took of what was open
	outside     int64    // what notes paid out, or carried on
	of          *Invoice // that it credits or replaces
}

// A Line is a line of an invoice.
type Line struct {
	Kind     string
	Meter    string
	From, To int64
	Version  int
	Quantity int64
	Included int64
	Tiers    []TierShare
	Priced   Priced
	Applied  string // the minimum or maximum of its price, if that is the amount
	Minor    int64
	Of       *Invoice
	Before   *Before // of a correction

	By, Exact string // of a level meter: which level is billed, and the level
	part      *Share // of a whole period that it covers; nil: it is of no time

	noted   int64  // of an invoice on paper: what credit notes took
	advance *Ahead // that it is
	back    Back   // that it is
}

// Before is what was billed of a line before a correction of it.
type Before struct {
	Quantity      int64 `json:"quantity"`
	AmountMinor   int64 `json:"amount_minor"`
	CreditedMinor int64 `json:"credited_minor"`
}

func (b *Before) String() string {
	if b == nil {
		return ""
	}
	return fmt.Sprintf(" before %d for %d, of which notes %d", b.Quantity, b.AmountMinor, b.CreditedMinor)
}

// Priced is what a line says of a price without tiers.
type Priced struct {
	UnitPrice    string `json:"unit_price"`
	PackageSize  int64  `json:"package_size"`
	PackagePrice string `json:"package_price"`
}

// priced is what lines of a meter say in the period.
func (p *Period) priced(meter string) (says Priced) {
	price := p.priceOf(meter)
	if price.UnitPrice != nil {
		says.UnitPrice = *price.UnitPrice
	}
	if price.PackageSize != nil && price.PackagePrice != nil {
		says.PackageSize, says.PackagePrice = *price.PackageSize, *price.PackagePrice
	}
	return says
}

// Charge is a one-off charge.
type Charge struct {
	Minor int64

	order int
}

// Charge adds a line to the next invoice.
func (l *Life) Charge(minor int64) {
	l.charges = append(l.charges, &Charge{minor, l.World.next()})
	l.came()
}

// lines are what the invoice says, as things stand.
func (i *Invoice) lines() []Line {
	lines := []Line{}
	if i.longer != nil {
		lines = append(lines, i.longer.line())
	}
	if i.Kind == "period" && !i.extra {
		lines = append(lines, i.period.lines(i.onward)...)
	}
	if i.Kind == "opening" {
		lines = append(lines, i.holds.line())
	}
	for _, b := range i.unused {
		lines = append(lines, b.line())
	}
	if i.holds != nil && i.Kind == "period" {
		lines = append(lines, i.holds.line())
	}
	for _, c := range i.corrections {
		lines = append(lines, c.line())
	}
	for _, c := range i.charges {
		lines = append(lines, Line{Kind: "charge", Minor: c.Minor})
	}
	return slices.DeleteFunc(lines, func(l Line) bool { return l.Minor == 0 && l.Kind != "usage" })
}

// base is P(b)−P(a) of the plan's base.
func (p *Period) base(a, b int64) int64 {
	if p.trial() {
		return 0
	}
	if p.long != nil {
		return p.ofBase(a, b).Money(p.long.version.BasePriceMinor)
	}
	return p.ofBase(a, b).Money(p.Version.BasePriceMinor)
}

// ofBase is which part of its base price [a,b) is.
func (p *Period) ofBase(a, b int64) *Share {
	share := p.share.part(a, b)
	if p.long != nil {
		share = Share{p.long.S, p.long.E, a, b}
	}
	return &share
}

// lines are those of the period itself: base, usage in plan order, minimum, unused. onward: its base
// goes on after it.
func (p *Period) lines(onward bool) []Line {
	charged := p.Start // where base was charged up to before
	switch {
	case p.long != nil && !p.trial():
		charged = p.long.to
	case p.inAdvance():
		charged = p.Known
	}
	lines := []Line{}
	if charged < p.End && !onward {
		lines = append(lines, Line{Kind: "base", From: charged, To: p.End, Version: p.based().N, Minor: p.base(charged, p.End), part: p.ofBase(charged, p.End)})
	}
	own := p.base(p.Start, p.End)
	for _, meter := range p.meters() {
		line := p.usage(meter, p.life.count(p, meter))
		own += line.Minor
		lines = append(lines, line)
	}
	if least := p.share.Money(p.Version.MinimumMinor); own < least && !p.trial() {
		lines = append(lines, Line{Kind: "minimum", From: p.Start, To: p.End, Version: p.Version.N, Minor: least - own, part: &p.share})
	}
	if p.End < charged && !onward {
		for _, b := range p.backs() {
			lines = append(lines, b.line())
		}
	}
	return lines
}

// said are the lines on paper, or those of a draft as things stand.
func (i *Invoice) said() []Line {
	if i.Status == "draft" {
		return i.lines()
	}
	return i.Paper.Lines
}

// meters are those that have a price: as in the plan, then those of own prices alone.
func (p *Period) meters() (all []string) {
	for _, price := range p.Version.Prices {
		all = append(all, price.Meter)
	}
	alone := []string{}
	for meter := range p.own {
		if !slices.Contains(all, meter) {
			alone = append(alone, meter)
		}
	}
	slices.Sort(alone)
	return append(all, alone...)
}

// priceOf is what a meter costs in the period; nil: it is free.
func (p *Period) priceOf(meter string) *Price {
	if own := p.own[meter]; own != nil {
		return own
	}
	for n := range p.Version.Prices {
		if p.Version.Prices[n].Meter == meter {
			return &p.Version.Prices[n]
		}
	}
	return nil
}

// usage is the usage line of a quantity.
func (p *Period) usage(meter string, quantity int64) Line {
	if p.life.World.isLevel(meter) {
		return p.heldLine(meter)
	}
	line := Line{Kind: "usage", Meter: meter, From: p.Start, To: p.End, Version: p.Version.N, Quantity: quantity, part: &p.share}
	rated := p.priceOf(meter).Rate(quantity, p.share, p.life.Exponent)
	line.Included = rated.Included
	if p.trial() {
		return line
	}
	line.Minor, line.Tiers, line.Applied, line.Priced = rated.Minor, rated.Tiers, rated.Applied, p.priced(meter)
	return line
}
