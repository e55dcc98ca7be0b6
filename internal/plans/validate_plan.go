package plans

import (
	"fmt"

	"quotad/internal/quota/model"
)

// The limits on the contents of one plan.
const (
	maxLimits  = 100
	maxOnMeter = 20 // limits on one meter; the response to each hit contains all of them
	maxPrices  = 100
	maxTiers   = 100
	maxMeters  = 1000

	maxBaseEvery = 120 // intervals
)

// maxInterval contains the greatest interval_count of each interval, which is about ten years.
var maxInterval = map[string]int64{"day": 3660, "week": 520, "month": 120, "year": 10}

// MeterKeys returns the well-formed keys of all meters that a plan names. Each key appears once, in the
// order of meters, limits and prices.
func (in *PlanInput) MeterKeys() []string {
	var keys []string
	seen := make(map[string]bool)
	name := func(key string) {
		if ValidKey(key) && !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	for _, key := range in.Meters {
		name(key)
	}
	for i := range in.Limits {
		name(in.Limits[i].Meter)
	}
	for i := range in.Prices {
		name(in.Prices[i].Meter)
	}
	return keys
}

// Normalize checks a plan and returns its stored form, with its defaults filled in and without white
// space at both ends of its name. The result shares no data that the caller could change. declared
// contains the existing meters and their kinds. The error is a model.FieldErrors with all errors of the
// plan.
func (in PlanInput) Normalize(key string, declared map[string]string) (PlanInput, error) {
	var bad faults
	bad.key("key", key)
	bad.name("name", &in.Name, true)
	_, known := Exponent(in.Currency)
	bad.must("currency", in.Currency, "an ISO 4217 code in capitals, such as USD, of a currency with a minor unit", known)
	in.checkInterval(&bad)
	bad.within("base_price_minor", in.BasePriceMinor, 0, model.MaxNumber)
	bad.within("minimum_minor", in.MinimumMinor, 0, model.MaxNumber)
	switch in.BaseIn {
	case "":
		in.BaseIn = InArrears
	case InArrears, InAdvance:
	default:
		bad.add("base_in", `must be "arrears" or "advance"`)
	}
	in.checkBaseEvery(&bad)
	switch in.ApplyTo {
	case "":
		in.ApplyTo = "all"
	case "all", "new":
	default:
		bad.add("apply_to", `must be "all" or "new"`)
	}
	in.Meters = in.checkMeters(&bad, declared)
	in.Features = checkFeatures(&bad, in.Features)
	in.Limits = in.checkLimits(&bad, declared)
	in.Prices = in.checkPrices(&bad, declared)
	return in, bad.err()
}

func (in *PlanInput) checkInterval(bad *faults) {
	most, known := maxInterval[in.Interval]
	if bad.must("interval", in.Interval, "day, week, month or year", known) {
		bad.within("interval_count", int64(in.IntervalCount), 1, most)
	}
}

// checkBaseEvery checks the number of intervals that the base price covers. Callers in Go may leave it 0,
// which means 1.
func (in *PlanInput) checkBaseEvery(bad *faults) {
	if in.BaseEvery == 0 {
		in.BaseEvery = 1
	}
	switch {
	case in.BaseEvery < 1 || in.BaseEvery > maxBaseEvery:
		bad.add("base_every", "must be from 1 to %d", maxBaseEvery)
	case in.BaseEvery > 1 && in.BaseIn == InArrears:
		bad.add("base_every", `may be above 1 only with "base_in":"advance"`)
	}
}

func (in *PlanInput) checkMeters(bad *faults, declared map[string]string) []string {
	if len(in.Meters) > maxMeters {
		bad.add("meters", "must be at most %d", maxMeters)
		return nil
	}
	first := make(map[string]int)
	for i, key := range in.Meters {
		path := fmt.Sprintf("meters[%d]", i)
		bad.meter(path, key, declared)
		if j, twice := first[key]; twice {
			bad.add(path, "is the same as meters[%d]", j)
		} else {
			first[key] = i
		}
	}
	return append([]string{}, in.Meters...)
}

// meter checks the key of a meter, which must have been declared.
func (f *faults) meter(path, key string, declared map[string]string) {
	if f.key(path, key) && declared[key] == "" {
		f.add(path, "no such meter: declare it first with PUT /v1/meters/%s", Shorten(key))
	}
}

// checkLimits compiles every limit, so that a limit too large for the arithmetic is rejected here and
// never at a hit.
func (in *PlanInput) checkLimits(bad *faults, declared map[string]string) []Limit {
	if len(in.Limits) > maxLimits {
		bad.add("limits", "must be at most %d", maxLimits)
		return nil
	}
	names := make(map[string]int)
	type bucket struct {
		meter string
		id    int64
	}
	buckets := make(map[bucket]int)
	limits, onMeter := make([]Limit, len(in.Limits)), make(map[string]int)
	attributes := make(map[string]map[string]bool) // attributes of each meter
	for i, l := range in.Limits {
		path := fmt.Sprintf("limits[%d].", i)
		bad.meter(path+"meter", l.Meter, declared)
		if onMeter[l.Meter]++; onMeter[l.Meter] == maxOnMeter+1 {
			bad.add(path+"meter", "has %d limits already: one meter may have no more", maxOnMeter)
		}
		if l.Per != "" {
			if attributes[l.Meter] == nil {
				attributes[l.Meter] = make(map[string]bool)
			}
			if attributes[l.Meter][l.Per] = true; len(attributes[l.Meter]) > model.MaxAttributes {
				bad.add(path+"per", "is one attribute too many: a hit may have %d", model.MaxAttributes)
			}
		}
		if declared[l.Meter] == KindLevel {
			bad.onLevel(path, &l)
			if len(attributes[l.Meter]) > 1 {
				bad.add(path+"per", "is one attribute too many: the limits of a level meter may have one")
			}
		}
		l.Algorithm = Shorten(l.Algorithm) // all names of algorithms are shorter, and the error repeats this text
		compiled, wrong := model.Compile(l.Spec)
		for _, w := range wrong {
			bad.add(path+w.Field, "%s", w.Detail)
		}
		if l.Name == model.CapName {
			bad.add(path+"name", "is what a cap is called: choose another name")
		}
		if j, twice := names[l.Name]; twice && l.Name != "" {
			bad.add(path+"name", "is already the name of limits[%d]", j)
		} else {
			names[l.Name] = i
		}
		if compiled != nil {
			b := bucket{l.Meter, compiled.ID}
			if j, twice := buckets[b]; twice && in.Limits[j].Name != l.Name {
				bad.add(path+"name", "cannot be told from limits[%d] by its hash: choose another name", j)
			}
			buckets[b] = i
			limits[i] = withDefaults(l, compiled)
		}
	}
	return limits
}

// onLevel checks a limit on a level meter and sets its on_outage to deny by default, because only the
// database knows the level.
func (f *faults) onLevel(path string, l *Limit) {
	if l.Algorithm != model.Allocation.String() {
		f.add(path+"algorithm", "must be allocation: the meter counts what is held, and that does not come back by time")
	}
	if l.OnOutage == "allow" {
		f.add(path+"on_outage", "must be deny, or left out: only the database knows what is held")
	}
	if l.OnOutage == "" {
		l.OnOutage = "deny"
	}
}

// withDefaults returns the limit in its stored and shown form, with all defaults filled in.
func withDefaults(l Limit, compiled *model.Limit) Limit {
	l.Mode = compiled.Mode.String()
	if l.OnOutage == "" {
		l.OnOutage = "allow"
	}
	l.Spec = model.WithDefaults(l.Spec)
	return l
}
