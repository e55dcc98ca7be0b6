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

// Price is a price of a plan, or a customer's own, read once: Compile it and keep it. It is not
// changed, so any number of goroutines may use it.
type Price struct {
	model    *priceModel
	levelBy  string // plans.ByAverage, ByPeak or ByLast of a level meter
	priced   billing.Priced
	unit     apd.Decimal // per_unit: of a unit; package: of a package
	size     int64       // of a package
	tiers    []tier
	included int64
	minimum  int64
	maximum  *int64 // nil: none
	exponent int
}

type tier struct {
	upTo *int64 // as it is shown; nil: the last tier
	end  int64  // the last unit of the tier
	unit apd.Decimal
	flat apd.Decimal

	unitPrice string  // as the price says it
	flatPrice *string // nil: none
}

// priceModel is what a price model charges. Which fields it takes is in package plans.
type priceModel struct {
	// charge computes the exact amount of an overage in millionths of a unit, and its tiers. A part of a
	// unit costs its part, begins a package, and is in the tier that holds it.
	charge func(p *Price, line *Line, overage *big.Int, exact *apd.Decimal) error
	// firstOver is the least overage, 1 or more, that costs at least so much, in major units; nil: none does.
	firstOver func(p *Price, amount *big.Rat) *big.Int
}

// priceModels are those of plans.PriceModels. per_unit is a package of one unit, of which parts cost their part.
var priceModels = map[string]*priceModel{
	"per_unit":  {(*Price).chargeUnits, (*Price).overInPackages},
	"package":   {(*Price).chargePackages, (*Price).overInPackages},
	"graduated": {(*Price).chargeGraduated, (*Price).overInGraduated},
	"volume":    {(*Price).chargeVolume, (*Price).overInVolume},
}

// Compile reads a price. exponent is how many digits the minor unit of its currency has, 0 to
// 4 (see plans.Exponent). The error is that of plans.CheckPrice, for a price that no plan may
// have; the price's meter does not count.
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

// Line is what a price makes of the quantity of a period.
type Line struct {
	Included    int64        // free units of the period, cut as the period is
	Overage     int64        // units beyond them, 0 or more; what is charged
	Tiers       []TierAmount // the tiers that units fall in; empty, not nil, without any
	Exact       string       // the amount in major units, neither rounded nor held: "4.938"
	Applied     string       // billing.AppliedMinimum or billing.AppliedMaximum, if that one moved the rounded amount
	AmountMinor int64        // rounded, and held between minimum and maximum; 0 … MaxMinor
	WholeMinor  *int64       // the minimum or maximum that was applied, of a full period; nil: neither was
	level       bool         // it is of a level
}

// LevelBy says which level of a period is priced, as plans.Price has it. It is empty for a meter that
// counts what passes.
func (p *Price) LevelBy() string { return p.levelBy }

// Priced is what units cost. It is the same for any quantity.
func (p *Price) Priced() billing.Priced { return p.priced }

// TierAmount is what one tier adds to a line. Those of a line add up to its overage and to its
// exact amount.
type TierAmount struct {
	UpTo      *int64        `json:"up_to"`      // of the price, counted after the included units; nil: the last tier
	Quantity  billing.Units `json:"quantity"`   // units in the tier; of a level with 6 digits
	Amount    string        `json:"amount"`     // in major units, exact, the tier's flat price in it
	UnitPrice string        `json:"unit_price"` // of the tier, in major units
	FlatPrice *string       `json:"flat_price"` // nil: none
}

// Rate computes the line of a quantity: the units of a meter in the period s. A quantity below
// 0 is rated as 0. Included units, minimum and maximum are cut as the period was; packages and
// tiers are not. The maximum counts where the rounding of a cut leaves it below the minimum.
//
// It is ErrTooLarge where the amount would have 10¹⁵ minor units or more; the line then has all
// but its AmountMinor. A quantity of math.MaxInt64 is rated as any other. Whoever knows that
// its count is full has to hold the invoice.
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

// hold holds an amount between minimum and maximum, and says which of them moved it: the minimum
// lifts, the maximum lowers, also where the rounding of a cut leaves the maximum below the minimum.
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

// applied returns the whole minimum or maximum that was applied.
func (p *Price) applied(which string) *int64 {
	switch which {
	case billing.AppliedMinimum:
		return &p.minimum
	case billing.AppliedMaximum:
		return p.maximum
	}
	return nil
}

// Correction computes a line `correction`: Rate, with the amount R(quantity) − billed in minor units.
// s is the period that is corrected, p the price it was billed by, quantity what it should
// have been billed for. billed is what its line and earlier corrections came to. noted is what credit
// notes took of them: no more than the rest is given back. It is ErrTooLarge as Rate is.
func (p *Price) Correction(quantity, billed, noted int64, s Span) (Line, error) {
	corrected, err := p.Rate(quantity, s)
	if err != nil {
		return corrected, err
	}
	corrected.AmountMinor = max(corrected.AmountMinor, noted) - billed
	return corrected, nil
}

// chargeUnits charges each unit alike.
func (p *Price) chargeUnits(_ *Line, overage *big.Int, exact *apd.Decimal) error {
	return times(exact, &p.unit, overage)
}

// chargePackages charges each package that is begun.
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

// chargeVolume charges all units at the price of the tier that the last of them falls in. No
// unit falls in none.
func (p *Price) chargeVolume(line *Line, overage *big.Int, exact *apd.Decimal) error {
	if overage.Sign() == 0 {
		return nil
	}
	for i := range p.tiers {
		if t := &p.tiers[i]; overage.Cmp(micro(t.end)) <= 0 {
			return t.charge(line, exact, overage)
		}
	}
	return nil // the last tier has no end
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

// units writes units of a tier, in millionths.
func (l *Line) units(micro *big.Int) billing.Units {
	if l.level {
		return billing.Units(Level{micro}.String())
	}
	return billing.Units(strconv.FormatInt(whole(micro), 10))
}
