package plans_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/testkit/planstest"
)

var declared = map[string]string{"api": plans.KindFlow, "seats": plans.KindFlow, "spots": plans.KindFlow, "held": plans.KindLevel}

func spec(name string) model.Spec {
	return model.Spec{Name: name, Algorithm: "token_bucket", Limit: 10, Window: "1m"}
}

func tiered(tiers ...plans.Tier) plans.Price {
	return plans.Price{Meter: "api", Model: "graduated", Tiers: tiers}
}

func bounded(least, most *int64) plans.Price {
	return plans.Price{Meter: "api", Model: "per_unit", UnitPrice: planstest.Ptr("1"), MinimumMinor: least, MaximumMinor: most}
}

var long = strings.Repeat("x", 201)

// held has limits on a level meter.
func held(limits ...plans.Limit) func(*plans.PlanInput) {
	for i := range limits {
		limits[i].Meter = "held"
	}
	return func(in *plans.PlanInput) { in.Limits, in.Prices = limits, nil }
}

func allocationPer(name, per string) plans.Limit {
	return plans.Limit{Spec: model.Spec{Name: name, Algorithm: "allocation", Limit: 5, Per: per}}
}

func pricedBy(meter, by string) func(*plans.PlanInput) {
	return func(in *plans.PlanInput) {
		price := planstest.PerUnit(meter)
		price.LevelBy = by
		in.Limits, in.Prices = nil, []plans.Price{price}
	}
}

func limit(l model.Spec) func(*plans.PlanInput) {
	return func(in *plans.PlanInput) { in.Limits = []plans.Limit{{Meter: "api", Spec: l}} }
}

func price(p plans.Price) func(*plans.PlanInput) {
	return func(in *plans.PlanInput) { in.Prices = []plans.Price{p} }
}

func aFeature(v any) func(*plans.PlanInput) {
	return func(in *plans.PlanInput) { in.Features = map[string]any{"f": v} }
}

// planFaults each spoil a good plan, and name all the paths that must be complained of.
var planFaults = map[string]struct {
	spoil func(in *plans.PlanInput)
	want  []string
}{
	"name missing":        {func(in *plans.PlanInput) { in.Name = "" }, []string{"name"}},
	"name blank":          {func(in *plans.PlanInput) { in.Name = " \u00a0" }, []string{"name"}},
	"name long":           {func(in *plans.PlanInput) { in.Name = long }, []string{"name"}},
	"name control":        {func(in *plans.PlanInput) { in.Name = "a\nb" }, []string{"name"}},
	"name NUL":            {func(in *plans.PlanInput) { in.Name = "a\x00b" }, []string{"name"}},
	"name not UTF-8":      {func(in *plans.PlanInput) { in.Name = "a\xff" }, []string{"name"}},
	"currency missing":    {func(in *plans.PlanInput) { in.Currency = "" }, []string{"currency"}},
	"currency unknown":    {func(in *plans.PlanInput) { in.Currency = "ZZZ" }, []string{"currency"}},
	"currency small":      {func(in *plans.PlanInput) { in.Currency = "usd" }, []string{"currency"}},
	"no currency":         {func(in *plans.PlanInput) { in.Currency = "XXX" }, []string{"currency"}},
	"currency long":       {func(in *plans.PlanInput) { in.Currency = "USDX" }, []string{"currency"}},
	"interval missing":    {func(in *plans.PlanInput) { in.Interval = "" }, []string{"interval"}},
	"interval unknown":    {func(in *plans.PlanInput) { in.Interval = "hour" }, []string{"interval"}},
	"count zero":          {func(in *plans.PlanInput) { in.IntervalCount = 0 }, []string{"interval_count"}},
	"count negative":      {func(in *plans.PlanInput) { in.IntervalCount = -1 }, []string{"interval_count"}},
	"months":              {func(in *plans.PlanInput) { in.IntervalCount = 121 }, []string{"interval_count"}},
	"days":                {func(in *plans.PlanInput) { in.Interval, in.IntervalCount = "day", 3661 }, []string{"interval_count"}},
	"weeks":               {func(in *plans.PlanInput) { in.Interval, in.IntervalCount = "week", 521 }, []string{"interval_count"}},
	"years":               {func(in *plans.PlanInput) { in.Interval, in.IntervalCount = "year", 11 }, []string{"interval_count"}},
	"base price negative": {func(in *plans.PlanInput) { in.BasePriceMinor = -1 }, []string{"base_price_minor"}},
	"base price huge":     {func(in *plans.PlanInput) { in.BasePriceMinor = 1e15 }, []string{"base_price_minor"}},
	"minimum negative":    {func(in *plans.PlanInput) { in.MinimumMinor = -1 }, []string{"minimum_minor"}},
	"minimum huge":        {func(in *plans.PlanInput) { in.MinimumMinor = 1e15 }, []string{"minimum_minor"}},
	"base_in":             {func(in *plans.PlanInput) { in.BaseIn = "between" }, []string{"base_in"}},
	"base_every negative": {func(in *plans.PlanInput) { in.BaseIn, in.BaseEvery = "advance", -1 }, []string{"base_every"}},
	"base_every huge":     {func(in *plans.PlanInput) { in.BaseIn, in.BaseEvery = "advance", 121 }, []string{"base_every"}},
	"base_every, arrears": {func(in *plans.PlanInput) { in.BaseEvery = 2 }, []string{"base_every"}},
	"gold":                {func(in *plans.PlanInput) { in.Currency = "XAU" }, []string{"currency"}},
	"apply_to":            {func(in *plans.PlanInput) { in.ApplyTo = "some" }, []string{"apply_to"}},

	"meter malformed":  {func(in *plans.PlanInput) { in.Meters = []string{"api", "a b"} }, []string{"meters[1]"}},
	"meter empty":      {func(in *plans.PlanInput) { in.Meters = []string{""} }, []string{"meters[0]"}},
	"meter long":       {func(in *plans.PlanInput) { in.Meters = []string{long} }, []string{"meters[0]"}},
	"meter undeclared": {func(in *plans.PlanInput) { in.Meters = []string{"api", "nope"} }, []string{"meters[1]"}},
	"meter twice":      {func(in *plans.PlanInput) { in.Meters = []string{"api", "api"} }, []string{"meters[1]"}},
	"meters many":      {func(in *plans.PlanInput) { in.Meters = make([]string, 1001) }, []string{"meters"}},

	"feature name":   {func(in *plans.PlanInput) { in.Features = map[string]any{"a b": true} }, []string{"features"}},
	"feature null":   {aFeature(nil), []string{"features.f"}},
	"feature list":   {aFeature([]any{1}), []string{"features.f"}},
	"feature long":   {aFeature(strings.Repeat("x", 501)), []string{"features.f"}},
	"feature NUL":    {aFeature("\x00"), []string{"features.f"}},
	"feature huge":   {aFeature(int64(1e15)), []string{"features.f"}},
	"feature float":  {aFeature(0.1), []string{"features.f"}},
	"feature NaN":    {aFeature(math.NaN()), []string{"features.f"}},
	"feature 1e99":   {aFeature(json.Number("1e99")), []string{"features.f"}},
	"feature digits": {aFeature(json.Number("0." + strings.Repeat("1", 13))), []string{"features.f"}},
	"features many": {func(in *plans.PlanInput) {
		in.Features = map[string]any{}
		for i := range 101 {
			in.Features[fmt.Sprint(i)] = true
		}
	}, []string{"features"}},

	"limit without all": {limit(model.Spec{}), []string{"limits[0].name", "limits[0].algorithm", "limits[0].window"}},
	"limit name":        {limit(spec("a b")), []string{"limits[0].name"}},
	"limit name of ..":  {limit(spec("..")), []string{"limits[0].name"}},
	"meter of ..":       {func(in *plans.PlanInput) { in.Meters = []string{".."} }, []string{"meters[0]"}},
	"limit window 0s":   {limit(model.Spec{Name: "l", Algorithm: "fixed_window", Window: "0s"}), []string{"limits[0].window"}},
	"limit window -1h":  {limit(model.Spec{Name: "l", Algorithm: "fixed_window", Window: "-1h"}), []string{"limits[0].window"}},
	"limit window 1y":   {limit(model.Spec{Name: "l", Algorithm: "fixed_window", Window: "1y"}), []string{"limits[0].window"}},
	"limit negative":    {limit(model.Spec{Name: "l", Algorithm: "fixed_window", Window: "1h", Limit: -1}), []string{"limits[0].limit"}},
	"limit huge":        {limit(model.Spec{Name: "l", Algorithm: "fixed_window", Window: "1h", Limit: 1e15}), []string{"limits[0].limit"}},
	"limit mode":        {limit(model.Spec{Name: "l", Algorithm: "fixed_window", Window: "1h", Mode: "mild"}), []string{"limits[0].mode"}},
	"limit burst":       {limit(model.Spec{Name: "l", Algorithm: "fixed_window", Window: "1h", Burst: planstest.Ptr(int64(1))}), []string{"limits[0].burst"}},
	"limit calendar":    {limit(model.Spec{Name: "l", Algorithm: "fixed_window", Window: "calendar_hour"}), []string{"limits[0].window"}},
	"limit allocation":  {limit(model.Spec{Name: "l", Algorithm: "allocation", Window: "1h"}), []string{"limits[0].window"}},
	"limit align":       {limit(model.Spec{Name: "l", Algorithm: "fixed_window", Window: "billing_period", Align: "first_hit"}), []string{"limits[0].align"}},
	"limit meter malformed": {
		func(in *plans.PlanInput) { in.Limits = []plans.Limit{{Meter: "", Spec: spec("l")}} },
		[]string{"limits[0].meter"},
	},
	"limit meter undeclared": {
		func(in *plans.PlanInput) {
			in.Limits = []plans.Limit{{Meter: "api", Spec: spec("l")}, {Meter: "nope", Spec: spec("m")}}
		},
		[]string{"limits[1].meter"},
	},
	"level with a window": {held(plans.Limit{Spec: spec("l")}), []string{"limits[0].algorithm"}},
	"level let in":        {held(plans.Limit{Spec: model.Spec{Name: "l", Algorithm: "allocation", OnOutage: "allow"}}), []string{"limits[0].on_outage"}},
	"level per two":       {held(allocationPer("l", "team"), allocationPer("m", "region")), []string{"limits[1].per"}},
	"level_by of a flow":  {pricedBy("api", "average"), []string{"prices[0].level_by"}},
	"level_by unknown":    {pricedBy("held", "most"), []string{"prices[0].level_by"}},
	"priced flow, allocated": {func(in *plans.PlanInput) {
		pricedBy("api", "")(in)
		in.Limits = []plans.Limit{{Meter: "api", Spec: allocationPer("l", "").Spec}}
	}, []string{"prices[0].meter"}},
	"limits of one name": {
		func(in *plans.PlanInput) {
			in.Limits = []plans.Limit{{Meter: "api", Spec: spec("l")}, {Meter: "seats", Spec: spec("l")}}
		},
		[]string{"limits[1].name"},
	},
	"limits of one identity": {
		func(in *plans.PlanInput) {
			in.Limits = []plans.Limit{{Meter: "api", Spec: spec("l")}, {Meter: "api", Spec: spec("l")}}
		},
		[]string{"limits[1].name"},
	},
	"limits many": {func(in *plans.PlanInput) { in.Limits = make([]plans.Limit, 101) }, []string{"limits"}},
	"limits many on a meter": {func(in *plans.PlanInput) {
		in.Limits = nil
		for i := range 23 {
			in.Limits = append(in.Limits, plans.Limit{Meter: "api", Spec: spec(fmt.Sprint("a", i))})
		}
		for i := range 20 {
			in.Limits = append(in.Limits, plans.Limit{Meter: "seats", Spec: spec(fmt.Sprint("s", i))})
		}
	}, []string{"limits[20].meter"}},
	"limit algorithm": {limit(model.Spec{Name: "l", Algorithm: "leaky", Window: "1h"}), []string{"limits[0].algorithm"}},

	"price model":           {price(plans.Price{Meter: "api", Model: "free"}), []string{"prices[0].model"}},
	"price meter":           {price(planstest.PerUnit("nope")), []string{"prices[0].meter"}},
	"price included":        {price(plans.Price{Meter: "api", Model: "per_unit", UnitPrice: planstest.Ptr("1"), Included: -1}), []string{"prices[0].included"}},
	"price bounds crossed":  {price(bounded(planstest.Ptr(int64(11)), planstest.Ptr(int64(10)))), []string{"prices[0].minimum_minor"}},
	"price minimum below 0": {price(bounded(planstest.Ptr(int64(-1)), nil)), []string{"prices[0].minimum_minor"}},
	"price minimum huge":    {price(bounded(planstest.Ptr(int64(1e15)), nil)), []string{"prices[0].minimum_minor"}},
	"price maximum below 0": {price(bounded(nil, planstest.Ptr(int64(-1)))), []string{"prices[0].maximum_minor"}},
	"price maximum huge":    {price(bounded(nil, planstest.Ptr(int64(1e15)))), []string{"prices[0].maximum_minor"}},
	"price unit none":       {price(plans.Price{Meter: "api", Model: "per_unit"}), []string{"prices[0].unit_price"}},
	"price unit extra": {
		price(plans.Price{
			Meter: "api", Model: "per_unit", UnitPrice: planstest.Ptr("1"), PackageSize: planstest.Ptr(int64(1)),
			PackagePrice: planstest.Ptr("1"), Tiers: []plans.Tier{{UnitPrice: "1"}},
		}),
		[]string{"prices[0].package_size", "prices[0].package_price", "prices[0].tiers"},
	},
	"price package none": {
		price(plans.Price{Meter: "api", Model: "package"}),
		[]string{"prices[0].package_size", "prices[0].package_price"},
	},
	"price package size": {
		price(plans.Price{Meter: "api", Model: "package", PackageSize: planstest.Ptr(int64(0)), PackagePrice: planstest.Ptr("1")}),
		[]string{"prices[0].package_size"},
	},
	"price package extra": {
		price(plans.Price{Meter: "api", Model: "package", PackageSize: planstest.Ptr(int64(1)), PackagePrice: planstest.Ptr("1"), UnitPrice: planstest.Ptr("1")}),
		[]string{"prices[0].unit_price"},
	},
	"price tiers none": {price(tiered()), []string{"prices[0].tiers"}},
	"price tiers many": {price(tiered(make([]plans.Tier, 101)...)), []string{"prices[0].tiers"}},
	"price tiers closed": {
		price(tiered(plans.Tier{UpTo: planstest.Ptr(int64(5)), UnitPrice: "1"})),
		[]string{"prices[0].tiers[0].up_to"},
	},
	"price tiers open early": {
		price(tiered(plans.Tier{UnitPrice: "1"}, plans.Tier{UnitPrice: "1"})),
		[]string{"prices[0].tiers[0].up_to"},
	},
	"price tiers falling": {
		price(tiered(plans.Tier{UpTo: planstest.Ptr(int64(5)), UnitPrice: "1", FlatPrice: nil}, plans.Tier{
			UpTo: planstest.Ptr(int64(5)), UnitPrice: "1",
			FlatPrice: nil,
		}, plans.Tier{UpTo: planstest.Ptr(int64(4)), UnitPrice: "1", FlatPrice: nil}, plans.Tier{UpTo: nil, UnitPrice: "1", FlatPrice: nil})),
		[]string{"prices[0].tiers[1].up_to", "prices[0].tiers[2].up_to"},
	},
	"price tiers zero": {
		price(tiered(plans.Tier{UpTo: planstest.Ptr(int64(0)), UnitPrice: "1", FlatPrice: nil}, plans.Tier{UpTo: nil, UnitPrice: "1", FlatPrice: nil})),
		[]string{"prices[0].tiers[0].up_to"},
	},
	"price tiers huge": {
		price(tiered(plans.Tier{UpTo: planstest.Ptr(int64(1e15)), UnitPrice: "1", FlatPrice: nil}, plans.Tier{UpTo: nil, UnitPrice: "1", FlatPrice: nil})),
		[]string{"prices[0].tiers[0].up_to"},
	},
	"price tier prices": {
		price(tiered(plans.Tier{UpTo: nil, UnitPrice: "", FlatPrice: planstest.Ptr("-1")})),
		[]string{"prices[0].tiers[0].unit_price", "prices[0].tiers[0].flat_price"},
	},
	"prices of one meter": {
		func(in *plans.PlanInput) {
			in.Prices = []plans.Price{planstest.PerUnit("api"), planstest.PerUnit("seats"), planstest.PerUnit("api")}
		},
		[]string{"prices[2].meter"},
	},
	"prices many": {func(in *plans.PlanInput) { in.Prices = make([]plans.Price, 101) }, []string{"prices"}},

	"everything at once": {func(in *plans.PlanInput) {
		in.Name, in.Currency, in.ApplyTo = "", "€", "x"
		in.Limits = []plans.Limit{{Meter: "api", Spec: spec("ok")}, {Meter: "nope", Spec: model.Spec{Name: "l", Algorithm: "x", Window: "1y"}}}
		in.Prices = []plans.Price{{Meter: "nope", Model: "x"}}
	}, []string{
		"name", "currency", "apply_to", "limits[1].meter", "limits[1].algorithm", "limits[1].window",
		"prices[0].meter", "prices[0].model",
	}},
}

func TestPlanFaults(t *testing.T) {
	for name, c := range planFaults {
		t.Run(name, func(t *testing.T) {
			in := planstest.Hourly(5)
			c.spoil(&in)
			_, err := in.Normalize("plan", declared)
			if got := planstest.Fields(err); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q\n%v", got, c.want, err)
			}
		})
	}
	if _, err := planstest.Hourly(5).Normalize("a/b", declared); !slices.Equal(planstest.Fields(err), []string{"key"}) {
		t.Errorf("key: %v", err)
	}
}

// An error repeats what was sent, but not all of it.
func TestFaultsAreShort(t *testing.T) {
	huge := strings.Repeat("ä", 30_000)
	in := planstest.Hourly(5)
	in.Limits[0].Algorithm = huge
	in.Features = map[string]any{huge: true}
	in.Meters = []string{strings.Repeat("m", 200)}
	_, err := in.Normalize("plan", declared)
	if got := planstest.Fields(err); !slices.Equal(got, []string{"meters[0]", "features", "limits[0].algorithm"}) {
		t.Errorf("%q", got)
	}
	if text := err.Error(); len(text) > 1000 || strings.Count(text, "…") != 3 || !utf8.ValidString(text) {
		t.Errorf("%d bytes: %.2000s", len(text), text)
	}
}

// The largest plan that is allowed is allowed, and everything has its default.
func TestPlanDefaults(t *testing.T) {
	in := planstest.Hourly(model.MaxNumber)
	in.Limits = append(
		in.Limits, plans.Limit{Meter: "seats", Spec: model.Spec{Name: "rate", Algorithm: "token_bucket", Limit: 10, Window: "1s"}},
		plans.Limit{Meter: "spots", Spec: model.Spec{Name: "held", Algorithm: "allocation", Limit: 10}},
		plans.Limit{Meter: "seats", Spec: model.Spec{Name: "slides", Algorithm: "sliding_window", Limit: 10, Window: "1m", OnOutage: "deny"}},
		plans.Limit{Meter: "seats", Spec: model.Spec{Name: "first", Algorithm: "fixed_window", Limit: 10, Window: "1m", Align: "first_hit"}},
		plans.Limit{Meter: "seats", Spec: model.Spec{Name: "month", Algorithm: "fixed_window", Limit: 10, Window: "calendar_month"}},
		plans.Limit{Meter: "seats", Spec: model.Spec{Name: "period", Algorithm: "fixed_window", Limit: 10, Window: "billing_period", Align: "clock"}},
	)
	in.Features = map[string]any{
		"a": 3, "b": float64(1e15 - 1), "c": json.Number("9007199254740993"[:15]), "d": json.Number("-1.50"), "e": "x",
		"f": true, "g": json.Number("-0.0"),
	}
	in.Prices = []plans.Price{tiered(plans.Tier{UpTo: planstest.Ptr(model.MaxNumber), UnitPrice: "1", FlatPrice: planstest.Ptr("5")},
		plans.Tier{UpTo: nil, UnitPrice: "0.5", FlatPrice: nil}), planstest.PerUnit("seats")}
	in.BasePriceMinor, in.MinimumMinor = model.MaxNumber, model.MaxNumber
	in.Prices[0].MinimumMinor, in.Prices[0].MaximumMinor = planstest.Ptr(model.MaxNumber), planstest.Ptr(model.MaxNumber)
	in.Prices[1].MinimumMinor, in.Prices[1].MaximumMinor = planstest.Ptr(int64(0)), planstest.Ptr(int64(0))
	got, err := in.Normalize("plan", declared)
	if err != nil {
		t.Fatal(err)
	}
	want := in
	want.ApplyTo, want.BaseIn, want.BaseEvery, want.Meters = "all", "arrears", 1, []string{}
	want.Limits = slices.Clone(in.Limits)
	want.Limits[0].Align, want.Limits[0].Mode, want.Limits[0].OnOutage = "clock", "hard", "allow"
	want.Limits[1].Burst = planstest.Ptr(int64(10))
	for i := range want.Limits[1:] {
		l := &want.Limits[1+i]
		l.Mode, l.OnOutage = "hard", cmp.Or(l.OnOutage, "allow")
	}
	want.Features = map[string]any{
		"a": int64(3), "b": int64(1e15 - 1), "c": int64(900719925474099), "d": json.Number("-1.50"), "e": "x", "f": true,
		"g": json.Number("0.0"),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if in.Limits[0].Mode != "" {
		t.Error("the caller's plan was changed")
	}
}

// A price by itself is checked as one of a plan, whatever its meter, and its fields have no
// path before them.
func TestPricesByThemselves(t *testing.T) {
	good := bounded(planstest.Ptr(int64(5)), planstest.Ptr(int64(5)))
	good.Meter = ""
	if err := plans.CheckPrice(&good); err != nil {
		t.Error(err)
	}
	bad := bounded(planstest.Ptr(int64(6)), planstest.Ptr(int64(5)))
	bad.Included, bad.UnitPrice = -1, planstest.Ptr("1e3")
	if got := planstest.Fields(plans.CheckPrice(&bad)); !slices.Equal(got, []string{"included", "minimum_minor", "unit_price"}) {
		t.Errorf("%q", got)
	}
}
