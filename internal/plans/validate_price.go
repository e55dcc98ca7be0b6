package plans

import (
	"fmt"
	"slices"
	"strings"

	"quotad/internal/quota/model"
)

// The most digits of a unit price before and after the decimal point, in major units.
const (
	maxPriceWhole    = 15
	maxPriceFraction = 12
)

// priceModel lists the fields that belong to a price model. These fields are required, and the fields of
// other models are rejected. Package rating defines the amounts that a model charges.
type priceModel struct {
	name              string
	unit, pack, tiers bool
}

var priceModels = []priceModel{
	{name: "per_unit", unit: true},
	{name: "package", pack: true},
	{name: "graduated", tiers: true},
	{name: "volume", tiers: true},
}

// PriceModels returns the names of all price models, the simplest first.
func PriceModels() []string {
	var names []string
	for _, m := range priceModels {
		names = append(names, m.name)
	}
	return names
}

func (in *PlanInput) checkPrices(bad *faults, declared map[string]string) []Price {
	if len(in.Prices) > maxPrices {
		bad.add("prices", "must be at most %d", maxPrices)
		return nil
	}
	meters := make(map[string]int)
	prices := make([]Price, len(in.Prices))
	for i, p := range in.Prices {
		path := fmt.Sprintf("prices[%d].", i)
		bad.meter(path+"meter", p.Meter, declared)
		if j, twice := meters[p.Meter]; twice {
			bad.add(path+"meter", "has its price in prices[%d] already", j)
		} else {
			meters[p.Meter] = i
		}
		checkPrice(bad, &p, path)
		bad.levelBy(path, &p, declared[p.Meter])
		if declared[p.Meter] == KindFlow && in.allocates(p.Meter) {
			bad.add(path+"meter", AllocatedFlow)
		}
		p.Tiers = slices.Clone(p.Tiers)
		prices[i] = p
	}
	return prices
}

// AllocatedFlow is the error text for a price on a flow meter that has an allocation limit. It gives the
// reason and the solution.
const AllocatedFlow = "is limited by an allocation and counts what passes, so units would be billed only in the period in which they are taken: " +
	"declare a meter of kind level, and move the limit and the price to it"

// allocates reports whether the meter has an allocation limit.
func (in *PlanInput) allocates(meter string) bool {
	return slices.ContainsFunc(in.Limits, func(l Limit) bool { return l.Meter == meter && l.Algorithm == model.Allocation.String() })
}

// The values of Price.LevelBy, which select the level of a billing period that is billed.
const (
	ByAverage = "average"
	ByPeak    = "peak"
	ByLast    = "last"
)

var levelsBy = []string{ByAverage, ByPeak, ByLast}

// LevelsBy returns the values of Price.LevelBy, the default first.
func LevelsBy() []string { return slices.Clone(levelsBy) }

// levelBy checks Price.LevelBy for a meter of the given kind and fills in the default.
func (f *faults) levelBy(path string, p *Price, kind string) {
	switch {
	case kind == KindFlow && p.LevelBy != "":
		f.add(path+"level_by", "does not belong to a meter of kind flow: leave it out")
	case kind == KindLevel && p.LevelBy == "":
		p.LevelBy = ByAverage
	case kind == KindLevel:
		last := len(levelsBy) - 1
		f.must(path+"level_by", p.LevelBy, strings.Join(levelsBy[:last], ", ")+" or "+levelsBy[last], slices.Contains(levelsBy, p.LevelBy))
	}
}

// ForMeter checks a price for a meter of the given kind and fills in its defaults. The error is nil or a
// model.FieldErrors.
func ForMeter(p *Price, kind string) error {
	var bad faults
	bad.levelBy("", p, kind)
	return bad.err()
}

// CheckPrice returns the errors of a price by itself, independent of its meter. The result is nil or a
// model.FieldErrors that names the price's fields.
func CheckPrice(p *Price) error {
	var bad faults
	checkPrice(&bad, p, "")
	return bad.err()
}

func checkPrice(bad *faults, p *Price, path string) {
	bad.within(path+"included", p.Included, 0, model.MaxNumber)
	bad.bounds(p, path)
	names := PriceModels()
	at, last := slices.Index(names, p.Model), len(names)-1
	if !bad.must(path+"model", p.Model, strings.Join(names[:last], ", ")+" or "+names[last], at >= 0) {
		return
	}
	takes := priceModels[at]
	bad.belongs(path+"unit_price", p.Model, takes.unit, p.UnitPrice != nil)
	bad.belongs(path+"package_size", p.Model, takes.pack, p.PackageSize != nil)
	bad.belongs(path+"package_price", p.Model, takes.pack, p.PackagePrice != nil)
	bad.belongs(path+"tiers", p.Model, takes.tiers, len(p.Tiers) > 0)
	if takes.unit {
		bad.decimal(path+"unit_price", p.UnitPrice)
	}
	if takes.pack {
		bad.decimal(path+"package_price", p.PackagePrice)
		if p.PackageSize != nil {
			bad.within(path+"package_size", *p.PackageSize, 1, model.MaxNumber)
		}
	}
	if takes.tiers {
		bad.tiers(p, path)
	}
}

// bounds checks the minimum and the maximum amount of the price's line item.
func (f *faults) bounds(p *Price, path string) {
	if p.MaximumMinor != nil {
		f.within(path+"maximum_minor", *p.MaximumMinor, 0, model.MaxNumber)
	}
	if p.MinimumMinor == nil {
		return
	}
	f.within(path+"minimum_minor", *p.MinimumMinor, 0, model.MaxNumber)
	if p.MaximumMinor != nil && *p.MinimumMinor > *p.MaximumMinor {
		f.add(path+"minimum_minor", "must not be above maximum_minor")
	}
}

// belongs checks that a field is present if its price model uses it, and absent otherwise.
func (f *faults) belongs(path, model string, takes, given bool) {
	if takes && !given {
		f.add(path, "is required with model %s", model)
	} else if !takes && given {
		f.add(path, "does not belong to model %s: leave it out", model)
	}
}

// tiers checks that every quantity falls into exactly one tier. Each up_to must exceed the previous
// up_to, and only the last tier must have a null up_to.
func (f *faults) tiers(p *Price, path string) {
	if len(p.Tiers) > maxTiers {
		f.add(path+"tiers", "must be at most %d", maxTiers)
		return
	}
	below := int64(0)
	for i := range p.Tiers {
		t, tier := &p.Tiers[i], fmt.Sprintf("%stiers[%d].", path, i)
		f.decimal(tier+"unit_price", &t.UnitPrice)
		f.decimal(tier+"flat_price", t.FlatPrice)
		switch last := i == len(p.Tiers)-1; {
		case last && t.UpTo != nil:
			f.add(tier+"up_to", "must be null in the last tier")
		case !last && t.UpTo == nil:
			f.add(tier+"up_to", "may be null in the last tier only")
		case t.UpTo != nil && (*t.UpTo <= below || *t.UpTo > model.MaxNumber):
			f.add(tier+"up_to", "must be above %d and at most %d", below, model.MaxNumber)
		}
		if t.UpTo != nil {
			below = max(below, *t.UpTo)
		}
	}
}

// decimal checks an optional amount in major units, which consists of digits, optionally followed by a
// point and more digits. Signs and exponents are rejected, so that computations can use the stored text
// directly.
func (f *faults) decimal(path string, value *string) {
	if value != nil && !isDecimal(*value) {
		f.add(path, "must be a decimal such as \"0.0004\", without sign or exponent, "+
			"at most %d digits before and %d after the point", maxPriceWhole, maxPriceFraction)
	}
}

func isDecimal(s string) bool {
	before, after, point := strings.Cut(s, ".")
	return isDigits(before, maxPriceWhole) && (!point || isDigits(after, maxPriceFraction))
}

func isDigits(s string, most int) bool {
	if s == "" || len(s) > most {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
