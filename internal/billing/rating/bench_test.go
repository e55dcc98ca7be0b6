package rating_test

import (
	"fmt"
	"testing"

	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

func BenchmarkRate(b *testing.B) {
	for name, p := range map[string]plans.Price{
		"per_unit": perUnit("0.0004"),
		"package":  {Model: "package", PackageSize: ptr(int64(1000)), PackagePrice: ptr("1.50"), Included: 500},
		"graduated": {Model: "graduated", Tiers: []plans.Tier{
			{UpTo: ptr(int64(1000)), UnitPrice: "0"}, {UpTo: ptr(int64(10_000)), UnitPrice: "0.0015", FlatPrice: ptr("5")}, {UnitPrice: "0.00095"},
		}},
		"volume": {Model: "volume", Tiers: []plans.Tier{{UpTo: ptr(int64(100)), UnitPrice: "0.10"}, {UnitPrice: "0.05", FlatPrice: ptr("1")}}},
	} {
		price := compile(b, p, 2)
		for _, s := range []rating.Span{month, third} {
			b.Run(fmt.Sprintf("%s/cut=%v", name, s == third), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := price.Rate(123_456_789, s); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	p := plans.Price{Model: "graduated", Tiers: []plans.Tier{{UpTo: ptr(int64(1000)), UnitPrice: "0"}, {UnitPrice: "0.00095", FlatPrice: ptr("5")}}}
	for b.Loop() {
		if _, err := rating.Compile(p, 2); err != nil {
			b.Fatal(err)
		}
	}
}
