package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"quotad/internal/plans"
	"quotad/internal/testkit/oracle"
)

var (
	yearMeters    = []string{"alpha", "beta", "gamma", "delta"}
	yearSellers   = map[string]string{"default": "", "north": "N-"} // their prefixes
	yearExponents = map[string]int{"JPY": 0, "USD": 2, "EUR": 2, "KWD": 3, "CLF": 4}
)

// newPlan writes the first version of a plan.
func (y *year) newPlan(currency string) {
	key := fmt.Sprintf("%s-%d", currency, len(y.plans[currency]))
	y.plans[currency] = append(y.plans[currency], key)
	t := y.tariff(currency)
	t.Interval, t.IntervalCount = one(y, "month", "month", "month", "month", "week", "day", "year"), 1
	switch t.Interval {
	case "day":
		t.IntervalCount = int(y.between(9, 40))
	case "week":
		t.IntervalCount = int(y.between(2, 5))
	case "month":
		t.IntervalCount = one(y, 1, 1, 1, 1, 1, 2, 3)
	}
	y.putPlan(key, t)
}

// newVersion writes another version of a plan.
func (y *year) newVersion() {
	key := one(y, one(y, y.plans["USD"], y.plans["EUR"], y.plans["JPY"], y.plans["KWD"], y.plans["CLF"])...)
	was := y.world.Newest(key)
	t := y.tariff(was.Currency)
	t.Interval, t.IntervalCount, t.ApplyTo = was.Interval, was.IntervalCount, one(y, "all", "all", "new")
	y.putPlan(key, t)
	y.done("plan version")
}

func (y *year) putPlan(key string, t oracle.Tariff) {
	tag := y.tags[key]
	got := y.call(201, "PUT", "/v1/plans/"+key, t, "If-Match", tag)
	y.tags[key] = got.header.Get("ETag")
	y.world.PutPlan(key, t)
}

// tariff draws what a plan costs.
func (y *year) tariff(currency string) oracle.Tariff {
	t := oracle.Tariff{
		Name: "P" + y.id(), Currency: currency, BaseIn: one(y, "arrears", "advance"), BasePriceMinor: one(y, 0, y.between(1, 100), y.between(1, 99999)),
		Meters: slices.Concat(yearMeters, yearLevels), Prices: []oracle.Price{}, ApplyTo: "all",
	}
	if t.BaseIn == "advance" && y.chance(2) {
		t.BaseEvery = one(y, 1, 2, 2, 3, 4, 6, 12, int(y.between(2, 120)))
	}
	if y.chance(4) {
		t.MinimumMinor = y.between(1, 60000)
	}
	if y.chance(3) { // a limit that refuses now and then; only on alpha
		t.Limits = append(t.Limits, map[string]any{
			"name": "most", "meter": "alpha", "algorithm": "fixed_window", "limit": y.between(100, 900), "window": "billing_period",
		})
	}
	meters := slices.Clone(yearMeters)
	y.dice.Shuffle(len(meters), func(i, j int) { meters[i], meters[j] = meters[j], meters[i] })
	for _, meter := range meters[:y.dice.IntN(4)] {
		p := y.price()
		p.Meter = meter
		t.Prices = append(t.Prices, p)
	}
	for _, meter := range yearLevels {
		if y.chance(2) {
			t.Prices = append(t.Prices, y.levelPrice(meter))
		}
		if y.chance(4) {
			t.Limits = append(t.Limits, map[string]any{"name": meter, "meter": meter, "algorithm": "allocation", "limit": y.between(10, 90)})
		}
	}
	return t
}

// levelPrice draws a price of a level meter.
func (y *year) levelPrice(meter string) oracle.Price {
	p := y.price()
	p.Meter, p.LevelBy = meter, one(y, "", "average", "peak", "last")
	p.Included /= 10 // or nothing is ever billed
	return p
}

// price draws a price of any model.
func (y *year) price() oracle.Price {
	p := oracle.Price{Model: one(y, plans.PriceModels()...)}
	switch p.Model {
	case "per_unit":
		p.UnitPrice = y.decimal()
	case "package":
		size := y.between(1, 300)
		p.PackageSize, p.PackagePrice = &size, y.decimal()
	case "graduated", "volume":
		upTo := int64(0)
		for range y.dice.IntN(4) {
			upTo += y.between(1, 200)
			t := y.tier()
			t.UpTo = new(int64)
			*t.UpTo = upTo
			p.Tiers = append(p.Tiers, t)
		}
		p.Tiers = append(p.Tiers, y.tier())
	default:
		panic("draw the fields of " + p.Model + " here")
	}
	if y.chance(2) {
		p.Included = y.between(1, 150)
	}
	if y.chance(4) {
		least := y.between(0, 3000)
		p.MinimumMinor = &least
	}
	if y.chance(4) {
		most := y.between(3000, 90000)
		p.MaximumMinor = &most
	}
	return p
}

func (y *year) tier() oracle.Tier {
	t := oracle.Tier{UnitPrice: *y.decimal()}
	if y.chance(2) {
		t.FlatPrice = y.decimal()
	}
	return t
}

// decimal draws a price in major units, with up to 6 digits after the point.
func (y *year) decimal() *string {
	digits := y.dice.IntN(7)
	text := strconv.FormatInt(y.dice.Int64N(8), 10)
	if digits > 0 {
		text += fmt.Sprintf(".%0*d", digits, y.dice.IntN([]int{1, 10, 100, 1000, 10000, 100000, 1000000}[digits]))
	}
	return &text
}

// call sends a request whose answer is not held against the OpenAPI document, which would cost
// most of the time. body is anything that JSON takes, or a text that is sent as it is.
func (y *year) call(status int, method, path string, body any, headers ...string) reply {
	y.t.Helper()
	got := y.try(method, path, body, headers...)
	if got.status != status {
		y.t.Fatalf("%s %s %v: status %d, want %d: %s", method, path, textOf(y, body), got.status, status, got.text)
	}
	return got
}

func textOf(y *year, body any) string {
	if text, ok := body.(string); ok {
		return text
	}
	text, err := json.Marshal(body)
	check(y.t, err)
	return string(text)
}
