package rating

import (
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/cockroachdb/apd/v3"

	"quotad/internal/billing"
	"quotad/internal/plans"
)

// Price is a parsed price of a plan or of a customer. Compile a price once and keep the result. A Price is
// immutable, so any number of goroutines may use it.
type Price struct {
	model    *priceModel
	levelBy  string // plans.ByAverage, ByPeak or ByLast for a level meter
	priced   billing.Priced
	unit     apd.Decimal // of a unit for per_unit, of a package for package
	size     int64       // units in a package
	tiers    []tier
	included int64
	minimum  int64
	maximum  *int64 // nil without a maximum
	exponent int
}

type tier struct {
	upTo *int64 // as shown; nil for the last tier
	end  int64  // the last unit of the tier
	unit apd.Decimal
	flat apd.Decimal

	unitPrice string  // as written in the price
	flatPrice *string // nil without a flat price
}

// priceModel contains the functions of a price model. Package plans defines the fields of each model.
type priceModel struct {
	// charge computes the exact amount and the tiers of an overage in millionths of a unit. A part of a unit
	// costs its part, begins a package, and belongs to the tier that contains it.
	charge func(p *Price, line *Line, overage *big.Int, exact *apd.Decimal) error
	// firstOver returns the smallest overage, at least 1, that costs at least amount in major units. It
	// returns nil if no overage does.
	firstOver func(p *Price, amount *big.Rat) *big.Int
}

// priceModels contains the models of plans.PriceModels. per_unit is a package of one unit that charges
// fractions of a unit.
var priceModels = map[string]*priceModel{
	"per_unit":  {(*Price).chargeUnits, (*Price).overInPackages},
	"package":   {(*Price).chargePackages, (*Price).overInPackages},
	"graduated": {(*Price).chargeGraduated, (*Price).overInGraduated},
	"volume":    {(*Price).chargeVolume, (*Price).overInVolume},
}

// Compile parses a price. exponent is the number of digits of the currency's minor unit, 0 to 4 (see
// plans.Exponent). For an invalid price, the error is that of plans.CheckPrice. The price's meter is ignored.
func Compile(p plans.Price, exponent int) (*Price, error) {
	if exponent < 0 || exponent > maxExponent {
		return nil, fmt.Errorf("a currency of %d digits", exponent)
	}
	if err := plans.CheckPrice(&p); err != nil {
		return nil, err
	}
	model := priceModels[p.Model]
	if model == nil {
		return nil, fmt.Errorf("a price of the model %s", p.Model)
	}
	if levels[p.LevelBy] == nil {
		return nil, fmt.Errorf("a price by the level %s", p.LevelBy)
	}
	read := &Price{model: model, levelBy: p.LevelBy, size: 1, included: p.Included, exponent: exponent}
	if p.MinimumMinor != nil {
		read.minimum = *p.MinimumMinor
	}
	if p.MaximumMinor != nil {
		most := *p.MaximumMinor
		read.maximum = &most
	}
	var err error
	switch {
	case p.UnitPrice != nil:
		read.priced.UnitPrice, err = *p.UnitPrice, parse(&read.unit, *p.UnitPrice)
	case p.PackagePrice != nil:
		read.priced.PackageSize, read.priced.PackagePrice = *p.PackageSize, *p.PackagePrice
		read.size, err = *p.PackageSize, parse(&read.unit, *p.PackagePrice)
	}
	if err != nil {
		return nil, err
	}
	for i := range p.Tiers {
		t, err := compileTier(&p.Tiers[i])
		if err != nil {
			return nil, err
		}
		read.tiers = append(read.tiers, t)
	}
	return read, nil
}

func compileTier(from *plans.Tier) (t tier, err error) {
	t.end = math.MaxInt64
	if from.UpTo != nil {
		t.end = *from.UpTo
		shown := t.end
		t.upTo = &shown
	}
	t.unitPrice = from.UnitPrice
	if from.FlatPrice != nil {
		flat := *from.FlatPrice
		t.flatPrice = &flat
	}
	if err = parse(&t.unit, from.UnitPrice); err == nil && from.FlatPrice != nil {
		err = parse(&t.flat, *from.FlatPrice)
	}
	return t, err
}

// Line is the result of rating a period's quantity.
type Line struct {
	Included    int64        // the period's included units, prorated like the period
	Overage     int64        // units beyond the included ones, at least 0; these are charged
	Tiers       []TierAmount // the tiers with units; empty, not nil, without tiers
	Exact       string       // amount in major units before rounding and bounds: "4.938"
	Applied     string       // billing.AppliedMinimum or billing.AppliedMaximum, if that bound changed the rounded amount
	AmountMinor int64        // rounded, and within minimum and maximum; 0 … MaxMinor
	WholeMinor  *int64       // the applied minimum or maximum of a full period; nil if no bound applied
	level       bool         // the line is of a level meter
}

// LevelBy returns the kind of level that the price bills, as in plans.Price. The result is "" for a flow
// meter.
func (p *Price) LevelBy() string { return p.levelBy }

// Priced returns the price of the units, which is the same for any quantity.
func (p *Price) Priced() billing.Priced { return p.priced }

// TierAmount contains the units and the amount of one tier in a line. The tiers of a line add up to its
// overage and to its exact amount.
type TierAmount struct {
	UpTo      *int64        `json:"up_to"`      // end of the tier in the price, after the included units; nil for the last tier
	Quantity  billing.Units `json:"quantity"`   // units in the tier; with 6 digits for a level
	Amount    string        `json:"amount"`     // exact amount in major units, including the flat price
	UnitPrice string        `json:"unit_price"` // the tier's price in major units
	FlatPrice *string       `json:"flat_price"` // nil without a flat price
}

// Rate computes the line of a quantity of units in the period s. A quantity below 0 is rated as 0. Included
// units, minimum and maximum are prorated like the period; packages and tiers are not. If rounding leaves the
// prorated maximum below the minimum, the maximum applies.
//
// Rate returns ErrTooLarge if the amount would have 10¹⁵ minor units or more, with a line that lacks only its
// AmountMinor. A quantity of math.MaxInt64 is rated like any other. A caller that knows that its count is
// saturated must hold the invoice.
func (p *Price) Rate(quantity int64, s Span) (Line, error) {
	line := Line{Included: s.Units(p.included), Tiers: []TierAmount{}}
	line.Overage = max(0, max(0, quantity)-line.Included)
	var exact apd.Decimal
	if err := p.model.charge(p, &line, micro(line.Overage), &exact); err != nil {
		return Line{}, err
	}
	line.Exact = text(&exact)
	amount, err := toMinor(&exact, p.exponent)
	if err != nil {
		return Line{}, err
	}
	amount, line.Applied = p.hold(amount, s)
	line.WholeMinor = p.applied(line.Applied)
	if tooLarge(amount) {
		return line, ErrTooLarge
	}
	line.AmountMinor = amount
	return line, nil
}

// hold limits an amount to minimum and maximum, and returns the bound that changed the amount. If rounding
// leaves the prorated maximum below the minimum, the maximum applies.
func (p *Price) hold(amount int64, s Span) (held int64, applied string) {
	held = max(amount, s.Money(p.minimum))
	if p.maximum != nil {
		held = min(held, s.Money(*p.maximum))
	}
	switch {
	case held > amount:
		return held, billing.AppliedMinimum
	case held < amount:
		return held, billing.AppliedMaximum
	}
	return held, ""
}

// applied returns the minimum or maximum of a full period that was applied, or nil if none was.
func (p *Price) applied(which string) *int64 {
	switch which {
	case billing.AppliedMinimum:
		return &p.minimum
	case billing.AppliedMaximum:
		return p.maximum
	}
	return nil
}

// Correction computes a `correction` line: the line of Rate with the amount R(quantity) − billed in minor
// units. s is the corrected period, p the price that billed it, and quantity the correct quantity. billed is
// the amount of the period's line and earlier corrections. noted is the part of billed that credit notes
// credited, and limits the amount given back to the rest. Like Rate, Correction may return ErrTooLarge.
func (p *Price) Correction(quantity, billed, noted int64, s Span) (Line, error) {
	corrected, err := p.Rate(quantity, s)
	if err != nil {
		return corrected, err
	}
	corrected.AmountMinor = max(corrected.AmountMinor, noted) - billed
	return corrected, nil
}

// chargeUnits charges all units at the same price.
func (p *Price) chargeUnits(_ *Line, overage *big.Int, exact *apd.Decimal) error {
	return times(exact, &p.unit, overage)
}

// chargePackages charges each package that has begun.
func (p *Price) chargePackages(_ *Line, overage *big.Int, exact *apd.Decimal) error {
	begun, rest := new(big.Int).QuoRem(overage, micro(p.size), new(big.Int))
	if rest.Sign() > 0 {
		begun.Add(begun, big.NewInt(1))
	}
	return times(exact, &p.unit, begun.Mul(begun, millionths))
}

// chargeGraduated charges each unit at its tier's price.
func (p *Price) chargeGraduated(line *Line, overage *big.Int, exact *apd.Decimal) error {
	below := new(big.Int)
	for i := range p.tiers {
		t := &p.tiers[i]
		end := micro(t.end)
		units := new(big.Int).Set(overage)
		if units.Cmp(end) > 0 {
			units.Set(end)
		}
		if units.Sub(units, below).Sign() <= 0 {
			return nil
		}
		if err := t.charge(line, exact, units); err != nil {
			return err
		}
		below = end
	}
	return nil
}

// chargeVolume charges all units at the price of the tier that contains the last unit. An overage of 0 is in
// no tier.
func (p *Price) chargeVolume(line *Line, overage *big.Int, exact *apd.Decimal) error {
	if overage.Sign() == 0 {
		return nil
	}
	for i := range p.tiers {
		if t := &p.tiers[i]; overage.Cmp(micro(t.end)) <= 0 {
			return t.charge(line, exact, overage)
		}
	}
	return nil // unreachable: the last tier has no end
}

// charge adds units of the tier to the line and to exact.
func (t *tier) charge(line *Line, exact *apd.Decimal, units *big.Int) error {
	var amount apd.Decimal
	if err := times(&amount, &t.unit, units); err != nil {
		return err
	}
	if err := add(&amount, &t.flat); err != nil {
		return err
	}
	line.Tiers = append(line.Tiers, TierAmount{UpTo: t.upTo, Quantity: line.units(units), Amount: text(&amount), UnitPrice: t.unitPrice, FlatPrice: t.flatPrice})
	return add(exact, &amount)
}

// units formats units of a tier, given in millionths.
func (l *Line) units(micro *big.Int) billing.Units {
	if l.level {
		return billing.Units(Level{micro}.String())
	}
	return billing.Units(strconv.FormatInt(whole(micro), 10))
}
