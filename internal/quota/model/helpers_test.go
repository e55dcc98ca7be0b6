package model

import (
	"slices"
	"testing"
	"time"

	"quotad/internal/calendar"
)

// As in package quotatest, which needs this one.

const testEpoch = int64(1_772_323_200_000_000) // 2026-03-01T00:00:00Z

func ptr[T any](v T) *T { return &v }

func mustCompile(t testing.TB, s Spec) *Limit {
	t.Helper()
	l, bad := Compile(s)
	if bad != nil {
		t.Fatal(bad)
	}
	return l
}

func limitOf(t testing.TB, name, algorithm, window string, limit int64) *Limit {
	t.Helper()
	return mustCompile(t, Spec{Name: name, Algorithm: algorithm, Limit: limit, Window: window})
}

func windowLimit(t testing.TB, name string, limit int64, window string) *Limit {
	t.Helper()
	return limitOf(t, name, "fixed_window", window, limit)
}

func bucketLimit(t testing.TB, name string, limit int64, window string, burst int64) *Limit {
	t.Helper()
	return mustCompile(t, Spec{Name: name, Algorithm: "token_bucket", Limit: limit, Window: window, Burst: &burst})
}

func testTarget(customer int64, meter int32, change int64, limits ...*Limit) *Target {
	anchor, err := calendar.ParseAnchor("2026-01-31T00:17:00") // cuts an hour
	if err != nil {
		panic(err)
	}
	return &Target{
		Change: change, Counters: []Counter{{CounterKey{customer, meter, ""}, limits}},
		Periods: calendar.Periods{Zone: time.UTC, Anchor: anchor, Interval: calendar.Interval{Unit: calendar.Months, Count: 1}},
	}
}

func fireTarget(customer int64, limits []*Limit) *Target {
	return testTarget(customer, 1, 1, limits...)
}

func withCounter(t *Target, attribute string, limits ...*Limit) *Target {
	key := t.Sibling(attribute)
	return &Target{Change: t.Change, Counters: append(slices.Clone(t.Counters), Counter{key, limits}), Periods: t.Periods}
}

// decideOn is a decision on rows, charged: the rows behind it are returned too.
func decideOn(t *Target, rows []Row, now, cost int64) (Decision, []Row) {
	d := Judge(t, rows, now, cost)
	if !d.Allowed {
		return d, rows
	}
	after := slices.Clone(rows)
	d.ChargeTo(after)
	return d.Charged(after), after
}
