package quotatest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

// Epoch is 2026-03-01T00:00:00Z, where a minute, an hour, a day and a month begin.
const Epoch = int64(1_772_323_200_000_000)

// Clock is the one clock of a test's engines; it goes where it is set.
type Clock struct{ At atomic.Int64 }

// NewClock is a clock that shows an instant, µs.
func NewClock(at int64) *Clock {
	c := new(Clock)
	c.At.Store(at)
	return c
}

// Now is what it shows, µs.
func (c *Clock) Now(context.Context) (int64, error) { return c.At.Load(), nil }

// Set has it show another instant.
func (c *Clock) Set(at int64) { c.At.Store(at) }

// Compile is a limit that must be right.
func Compile(t testing.TB, s model.Spec) *model.Limit {
	t.Helper()
	l, bad := model.Compile(s)
	if bad != nil {
		t.Fatal(bad)
	}
	return l
}

// Window is a fixed window.
func Window(t testing.TB, name string, limit int64, window string) *model.Limit {
	t.Helper()
	return Compile(t, model.Spec{Name: name, Algorithm: "fixed_window", Limit: limit, Window: window})
}

// Bucket is a token bucket.
func Bucket(t testing.TB, name string, limit int64, window string, burst int64) *model.Limit {
	t.Helper()
	return Compile(t, model.Spec{Name: name, Algorithm: "token_bucket", Limit: limit, Window: window, Burst: &burst})
}

// Anchor is that of the billing periods of targets here.
var Anchor = func() calendar.Anchor {
	a, err := calendar.ParseAnchor("2026-01-31T00:17:00") // cuts an hour
	if err != nil {
		panic(err)
	}
	return a
}()

// Target has one counter, the customer's own. Its hours are UTC's, its periods begin
// at 17 minutes past midnight.
func Target(customer int64, meter int32, change int64, limits ...*model.Limit) *model.Target {
	return &model.Target{
		Change: change, Counters: []model.Counter{{Key: model.CounterKey{Customer: customer, Meter: meter, Attribute: ""}, Limits: limits}},
		Periods: calendar.Periods{Zone: time.UTC, Anchor: Anchor, Interval: calendar.Interval{Unit: calendar.Months, Count: 1}},
	}
}

// WithCounter returns a copy of the target that also charges the counter of an attribute's value.
func WithCounter(t *model.Target, attribute string, limits ...*model.Limit) *model.Target {
	c := model.CounterKey{Customer: t.Counters[0].Key.Customer, Meter: t.Counters[0].Key.Meter, Attribute: attribute}
	return &model.Target{
		Change: t.Change, Counters: append(slices.Clone(t.Counters), model.Counter{Key: c, Limits: limits}),
		Periods: t.Periods,
	}
}

var lastCustomer atomic.Int64

// FreshCustomers returns the first of n customers that no test has used.
func FreshCustomers(n int) int64 { return lastCustomer.Add(int64(n)) - int64(n) + 1 }

// Limit is one of any algorithm with a window.
func Limit(t testing.TB, name, algorithm, window string, limit int64, burst ...int64) *model.Limit {
	t.Helper()
	s := model.Spec{Name: name, Algorithm: algorithm, Limit: limit, Window: window}
	if len(burst) > 0 {
		s.Burst = &burst[0]
	}
	l, bad := model.Compile(s)
	if bad != nil {
		t.Fatal(bad)
	}
	return l
}

// PerIP is a target of a fresh customer whose limits are per ip, but for those that are not.
func PerIP(t testing.TB, specs ...model.Spec) *model.Target {
	t.Helper()
	var limits []*model.Limit
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
		limits = append(limits, Compile(t, s))
	}
	periods := calendar.Periods{Zone: time.UTC, Anchor: Anchor, Interval: calendar.Interval{Unit: calendar.Months, Count: 1}}
	return model.NewTarget(1, FreshCustomers(1), 1, limits, periods, nil)
}

// Customer is a target's.
func Customer(t *model.Target) int64 { return t.Counters[0].Key.Customer }

// IP is the target of a hit with an attribute ip.
func IP(t *model.Target, value string) *model.Target { return t.For(map[string]string{"ip": value}) }

// Decide is a decision on rows, charged: the rows behind it are returned too.
func Decide(t *model.Target, rows []model.Row, now, cost int64) (model.Decision, []model.Row) {
	d := model.Judge(t, rows, now, cost)
	if !d.Allowed {
		return d, rows
	}
	after := slices.Clone(rows)
	d.ChargeTo(after)
	for i := range after {
		after[i].Version, after[i].Change = rows[i].Version+1, max(rows[i].Change, t.Change)
	}
	return d.Charged(after), after
}

func sortedKeys[M ~map[K]V, K cmp.Ordered, V any](m M) []K { return slices.Sorted(maps.Keys(m)) }

// Sized is the size of a test by how long the tests may take.
func Sized(short, usual, long int) int {
	switch {
	case testing.Short():
		return short
	case os.Getenv("QUOTAD_TEST_LONG") != "":
		return long
	}
	return usual
}
