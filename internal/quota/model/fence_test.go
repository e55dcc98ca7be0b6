package model

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"quotad/internal/testkit"
)

// TestAChargeOfNothingIsNotSeen: a row that a charge of cost 0 brought forward, as a fence does,
// says at every later instant what it would have said without.
func TestAChargeOfNothingIsNotSeen(t *testing.T) {
	limits := []*Limit{
		windowLimit(t, "fixed", 9, "7s"), windowLimit(t, "month", 900, "calendar_month"), windowLimit(t, "period", 900, "billing_period"),
		mustCompile(t, Spec{Name: "first", Algorithm: "fixed_window", Limit: 9, Window: "7s", Align: "first_hit"}),
		limitOf(t, "sliding", "sliding_window", "11s", 9), limitOf(t, "log", "sliding_log", "9s", 20),
		bucketLimit(t, "bucket", 7, "13s", 9), mustCompile(t, Spec{Name: "seats", Algorithm: "allocation", Limit: 90}),
		mustCompile(t, Spec{Name: "soft", Algorithm: "fixed_window", Limit: 3, Window: "5s", Mode: "soft"}),
		mustCompile(t, Spec{Name: "shadow", Algorithm: "sliding_window", Limit: 3, Window: "5s", Mode: "shadow"}),
	}
	target := fireTarget(1, limits)
	first := testkit.Seed(t)
	for n := range uint64(3000) {
		seed := first + n
		r := rand.New(rand.NewPCG(seed, 7))
		at, row := testEpoch+16*60e6, []Row{{}} // a minute before the period ends
		for range r.IntN(8) {
			at += r.Int64N(20e6)
			target.Charge(row, 1+r.Int64N(5), at, nil)
			row[0].Version++
		}
		stepped := []Row{row[0]}
		at += r.Int64N(20e6)
		target.Charge(stepped, 0, at, nil)
		if stepped[0].At != at {
			t.Fatalf("the row stands at %d, want %d", stepped[0].At, at)
		}
		for range 10 {
			at += r.Int64N(5e6)
			cost := r.Int64N(12)
			want, got := Judge(target, row, at, cost), Judge(target, stepped, at, cost)
			if want.Allowed != got.Allowed || want.At != got.At || !reflect.DeepEqual(want.Views(), got.Views()) {
				t.Fatalf("seed %d: %s, want %s", seed, got.String(), want.String())
			}
		}
	}
}
