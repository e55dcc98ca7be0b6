package quota

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"quotad/internal/calendar"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// testEpoch is 2026-03-01T00:00:00Z, where a minute, an hour, a day and a month begin.
const testEpoch = int64(1_772_323_200_000_000)

// testClock is the one clock of a test's engines; it goes where it is set.
type testClock struct{ At atomic.Int64 }

func newTestClock(at int64) *testClock {
	c := new(testClock)
	c.At.Store(at)
	return c
}

func (c *testClock) Now(context.Context) (int64, error) { return c.At.Load(), nil }
func (c *testClock) Set(at int64)                       { c.At.Store(at) }

func mustCompile(t testing.TB, s Spec) *Limit {
	t.Helper()
	l, bad := Compile(s)
	if bad != nil {
		t.Fatal(bad)
	}
	return l
}

func windowLimit(t testing.TB, name string, limit int64, window string) *Limit {
	t.Helper()
	return mustCompile(t, Spec{Name: name, Algorithm: "fixed_window", Limit: limit, Window: window})
}

func bucketLimit(t testing.TB, name string, limit int64, window string, burst int64) *Limit {
	t.Helper()
	return mustCompile(t, Spec{Name: name, Algorithm: "token_bucket", Limit: limit, Window: window, Burst: &burst})
}

var testAnchor = func() calendar.Anchor {
	a, err := calendar.ParseAnchor("2026-01-31T00:17:00") // cuts an hour
	if err != nil {
		panic(err)
	}
	return a
}()

// testTarget has one counter, the customer's own. Its hours are UTC's, its periods begin
// at 17 minutes past midnight.
func testTarget(customer int64, meter int32, change int64, limits ...*Limit) *Target {
	return &Target{
		Change: change, Counters: []Counter{{CounterKey{customer, meter, ""}, limits}},
		Periods: calendar.Periods{Zone: time.UTC, Anchor: testAnchor, Interval: calendar.Interval{Unit: calendar.Months, Count: 1}},
	}
}

// withCounter returns a copy of the target that also charges the counter of an attribute's value.
func withCounter(t *Target, attribute string, limits ...*Limit) *Target {
	c := CounterKey{t.Counters[0].Key.Customer, t.Counters[0].Key.Meter, attribute}
	return &Target{
		Change: t.Change, Counters: append(slices.Clone(t.Counters), Counter{c, limits}),
		Periods: t.Periods,
	}
}

var lastCustomer atomic.Int64

// freshCustomers returns the first of n customers that no test has used.
func freshCustomers(n int) int64 { return lastCustomer.Add(int64(n)) - int64(n) + 1 }

func limitOf(t testing.TB, name, algorithm, window string, limit int64, burst ...int64) *Limit {
	t.Helper()
	s := Spec{Name: name, Algorithm: algorithm, Limit: limit, Window: window}
	if len(burst) > 0 {
		s.Burst = &burst[0]
	}
	l, bad := Compile(s)
	if bad != nil {
		t.Fatal(bad)
	}
	return l
}

// perIP is a target of a fresh customer whose limits are per ip, but for those that are not.
func perIP(t testing.TB, specs ...Spec) *Target {
	t.Helper()
	var limits []*Limit
	for i, s := range specs {
		if s.Name == "" {
			s.Name = fmt.Sprint("l", i)
		}
		switch s.Per {
		case "":
			s.Per = "ip"
		case "-":
			s.Per = ""
		}
		limits = append(limits, mustCompile(t, s))
	}
	periods := calendar.Periods{Zone: time.UTC, Anchor: testAnchor, Interval: calendar.Interval{Unit: calendar.Months, Count: 1}}
	return NewTarget(1, freshCustomers(1), 1, limits, periods, nil)
}

func customerOf(t *Target) int64 { return t.Counters[0].Key.Customer }

func ipOf(t *Target, value string) *Target { return t.For(map[string]string{"ip": value}) }

// decideOn is a decision on rows, charged: the rows behind it are returned too.
func decideOn(t *Target, rows []row, now, cost int64) (Decision, []row) {
	d := judge(t, rows, now, cost)
	if !d.Allowed {
		return d, rows
	}
	after := slices.Clone(rows)
	d.chargeTo(after)
	for i := range after {
		after[i].version, after[i].change = rows[i].version+1, max(rows[i].change, t.Change)
	}
	return d.behind(after), after
}

func sortedKeys[M ~map[K]V, K cmp.Ordered, V any](m M) []K { return slices.Sorted(maps.Keys(m)) }

// sized is the size of a test by how long the tests may take.
func sized(short, usual, long int) int {
	switch {
	case testing.Short():
		return short
	case os.Getenv("QUOTAD_TEST_LONG") != "":
		return long
	}
	return usual
}
