package model

import (
	"fmt"
	"testing"

	"quotad/internal/calendar"
)

// chargedTarget is a target of a window and a bucket, and its row after some hits.
func chargedTarget(t testing.TB, notify []int, used int64) (*Target, Row) {
	t.Helper()
	burst := int64(1000)
	limits := []*Limit{
		mustCompile(t, Spec{Name: "w", Algorithm: "fixed_window", Window: "1h", Limit: 1000, Notify: notify}),
		mustCompile(t, Spec{Name: "b", Algorithm: "token_bucket", Window: "1d", Limit: 1000, Burst: &burst, Notify: notify}),
	}
	target := NewTarget(1, 1, 1, limits, calendar.Periods{}, nil)
	row := Row{At: testEpoch, Version: 1}
	rows := []Row{row}
	target.Charge(rows, used, testEpoch, nil)
	target.Raise(&rows[0], testEpoch, 0)
	return target, rows[0]
}

// A charge of limits that have raised nothing writes what it wrote without thresholds, and takes no more
// memory. One of limits that have carries what they raised.
func TestPlainChargesCarryNothing(t *testing.T) {
	for _, c := range []struct {
		notify []int
		used   int64
		state  int // integers
	}{{nil, 600, 2 * BucketLen}, {[]int{80, 100}, 600, 2 * BucketLen}, {[]int{80, 100}, 800, 2 * (2*BucketLen + raisedLen)}} {
		target, row := chargedTarget(t, c.notify, c.used)
		buf := make([]int64, 0, 32)
		var s Series
		rows := make([]Row, 1)
		report := func(int, Decision) {}
		allocations := testing.AllocsPerRun(100, func() {
			s.Costs, rows[0] = append(s.Costs[:0], 1, 2), row
			s.Decide(target, rows, testEpoch+1, buf, report)
		})
		if len(rows[0].State) != c.state || allocations > 0 {
			t.Errorf("notify %v, %d used: the state has %d integers, and %v allocations were made", c.notify, c.used, len(rows[0].State), allocations)
		}
	}
}

// BenchmarkCharge is a group of one hit: of limits without thresholds, with ones that are not reached, and
// with ones that were raised.
func BenchmarkCharge(b *testing.B) {
	for name, c := range map[string]struct {
		notify []int
		used   int64
	}{"plain": {nil, 1}, "below": {[]int{80, 100}, 1}, "raised": {[]int{80, 100}, 850}} {
		b.Run(name, func(b *testing.B) {
			target, row := chargedTarget(b, c.notify, c.used)
			buf, rows := make([]int64, 0, 32), make([]Row, 1)
			var s Series
			report := func(int, Decision) {}
			for b.Loop() {
				s.Costs, rows[0] = append(s.Costs[:0], 1), row
				s.Decide(target, rows, testEpoch+1, buf, report)
				if target.Notifies() {
					if all, _ := target.Raise(&rows[0], testEpoch+1, 0); len(all) > 0 {
						b.Fatal(fmt.Sprint(all))
					}
				}
			}
		})
	}
}
