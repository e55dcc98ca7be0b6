package oracle

import "slices"

// An Invoice is one on its way, or on paper.
type Invoice struct {
	Kind       string
	Status     string
	Start, End int64
	Paper      Paper // what it says, once it is finalized

	life        *Life
	period      *Period // that it is for; of a credit note: nil
	holds       *Period // whose base in advance is on it
	due         int64   // when it is finalized
	charges     []*Charge
	corrections []*Correction
	unused      []*Period // whose own invoice became void: what that gave back is here
	applied     []applied
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

	noted   int64   // of an invoice on paper: what credit notes took
	advance *Period // whose base in advance it is
	back    *Period // whose base in advance it gives back
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
func (l *Life) Charge(minor int64) { l.charges = append(l.charges, &Charge{minor, l.World.next()}) }

// lines are what the invoice says, as things stand.
func (i *Invoice) lines() []Line {
	lines := []Line{}
	if i.Kind == "period" {
		lines = i.period.lines()
	}
	if i.Kind == "opening" {
		lines = append(lines, i.holds.baseLine(i.holds.Start, i.holds.Known, true))
	}
	for _, p := range i.unused {
		lines = append(lines, p.unusedLine())
	}
	if i.holds != nil && i.Kind == "period" {
		lines = append(lines, i.holds.baseLine(i.holds.Start, i.holds.Known, true))
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
	return p.share.part(a, b).Money(p.Version.BasePriceMinor)
}

func (p *Period) baseLine(a, b int64, advance bool) Line {
	line := Line{Kind: "base", From: a, To: b, Version: p.Version.N, Minor: p.base(a, b)}
	if advance {
		line.advance = p
	}
	return line
}

// lines are those of the period itself: base, usage in plan order, minimum, unused.
func (p *Period) lines() []Line {
	charged := p.Start // where base was charged up to before
	if p.Version.BaseIn == "advance" {
		charged = p.Known
	}
	lines := []Line{}
	if charged < p.End {
		lines = append(lines, p.baseLine(charged, p.End, false))
	}
	own := p.base(p.Start, p.End)
	for _, meter := range p.meters() {
		line := p.usage(meter, p.life.count(p, meter))
		own += line.Minor
		lines = append(lines, line)
	}
	if least := p.share.Money(p.Version.MinimumMinor); own < least && !p.trial() {
		lines = append(lines, Line{Kind: "minimum", From: p.Start, To: p.End, Version: p.Version.N, Minor: least - own})
	}
	if p.End < charged {
		lines = append(lines, p.unusedLine())
	}
	return lines
}

// unusedLine gives back the base in advance from the period's end on, at most what an invoice holds
// of it that is not void, less notes.
func (p *Period) unusedLine() Line {
	held := int64(0)
	if p.heldBy != nil && p.heldBy.Status != "void" {
		for _, line := range p.heldBy.said() {
			if line.advance == p {
				held = line.Minor - line.noted
			}
		}
	}
	return Line{Kind: "unused", From: p.End, To: p.Known, Version: p.Version.N, Minor: -min(p.base(p.End, p.Known), held), back: p}
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
	line := Line{Kind: "usage", Meter: meter, From: p.Start, To: p.End, Version: p.Version.N, Quantity: quantity}
	rated := p.priceOf(meter).Rate(quantity, p.share, p.life.Exponent)
	line.Included = rated.Included
	if p.trial() {
		return line
	}
	line.Minor, line.Tiers, line.Applied, line.Priced = rated.Minor, rated.Tiers, rated.Applied, p.priced(meter)
	return line
}
