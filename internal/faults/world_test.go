package faults

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The world of a run: customers on two plans, one whose limits nobody reaches and one
// whose limits are reached all the time. All live on a clock that stands still, so that no
// window moves and nothing is refilled: what is used is what was admitted, in whatever
// order, and two limits of one meter must always say the same.

const (
	numCustomers = 30
	standsAt     = "2026-03-10T12:00:00Z"
	later        = "2026-03-10T15:00:00Z" // every reservation has expired by then, the month is the same
	monthStart   = "2026-03-01T00:00:00Z"
	monthEnd     = "2026-04-01T00:00:00Z"
	loose        = 1_000_000_000
	ttl          = 3_600_000 // of reservations, ms
)

// limit is one limit of both plans.
type limit struct {
	name, meter, algorithm string
	tight                  int64
	per                    bool // its buckets are of the values of region
	more                   string
}

// limits have all algorithms whose state stands still with the clock.
var limits = []limit{
	{"calls-month", "calls", "fixed_window", 60, false, `,"window":"calendar_month"`},
	{"calls-log", "calls", "sliding_log", 55, false, `,"window":"1h","precision":"1m"`},
	{"calls-region", "calls", "token_bucket", 30, true, `,"window":"1h","per":"region"`},
	{"tokens-month", "tokens", "fixed_window", 75, false, `,"window":"calendar_month"`},
	{"tokens-bucket", "tokens", "token_bucket", 65, false, `,"window":"1h"`},
	{"seats", "seats", "allocation", 50, false, ``},
	{"seats-held", "seats", "concurrency", 18, false, `,"ttl":"1h"`},
	{"jobs-running", "jobs", "concurrency", 14, false, `,"ttl":"1h"`},
	{"jobs-log", "jobs", "sliding_log", 52, false, `,"window":"30m","precision":"1m"`},
	{"jobs-region", "jobs", "allocation", 28, true, `,"per":"region"`},
}

var (
	meters  = []string{"calls", "tokens", "seats", "jobs"}
	regions = []string{"", "eu", "us"}
)

// of is the limit as customers have it.
func (l *limit) of(customer int) int64 {
	if isTight(customer) {
		return l.tight
	}
	return loose
}

// outlasts reports whether the limit says the same when time has passed, but for what
// was reserved.
func (l *limit) outlasts() bool {
	return l.algorithm == "allocation" || strings.HasSuffix(l.name, "-month")
}

func isTight(customer int) bool { return customer%2 == 1 }

// presently: the customer's refunds are of the present windows, or else of hits by their
// ids. Mixed, the order would decide what is left of a hit.
func presently(customer int) bool { return customer%3 == 0 }

func keyOf(customer int) string { return fmt.Sprintf("customer-%02d", customer) }

// planOf is a plan's body.
func planOf(tight bool) string {
	var all []string
	for _, l := range limits {
		units := int64(loose)
		if tight {
			units = l.tight
		}
		all = append(all, fmt.Sprintf(`{"name":%q,"meter":%q,"algorithm":%q,"limit":%d,"on_outage":"deny"%s}`, l.name, l.meter, l.algorithm, units, l.more))
	}
	return `{"name":"Plan","currency":"USD","interval":"month","base_price_minor":0,"prices":[],"limits":[` + strings.Join(all, ",") + `]}`
}

// setUp writes the world by way of a node without faults.
func setUp(t testing.TB, url string) {
	t.Helper()
	write := func(path, body string) {
		t.Helper()
		write(t, newHTTPClient(), request{http.MethodPut, path, body, ""}, url)
	}
	for _, m := range meters {
		write("/v1/meters/"+m, `{"unit":"unit"}`)
	}
	write("/v1/plans/loose", planOf(false))
	write("/v1/plans/tight", planOf(true))
	write("/v1/test-clocks/still", `{"now":"`+standsAt+`"}`)
	for c := range numCustomers {
		plan := "loose"
		if isTight(c) {
			plan = "tight"
		}
		write("/v1/customers/"+keyOf(c), `{"name":"C","plan":"`+plan+`","timezone":"UTC","test_clock":"still"}`)
	}
}
