package model

import (
	"math"
	"slices"
	"testing"
)

// TestViews: what a limit says at its edges. Random states are TestTracesModel's matter.
func TestViews(t *testing.T) {
	const s, day = int64(1e6), int64(86400e6)
	window, closed := windowLimit(t, "w", 10, "1m"), windowLimit(t, "w", 0, "1m")
	tokens, shut := bucketLimit(t, "b", 60, "1m", 10), mustCompile(t, Spec{Name: "b", Algorithm: "token_bucket", Window: "1m"})
	empty := bucketLimit(t, "b", 60, "1m", 0)
	slow := bucketLimit(t, "b", 1, "3660d", 29166)
	fixed := func(limit int64, window, align string) *Limit {
		return mustCompile(t, Spec{Name: "f", Algorithm: "fixed_window", Limit: limit, Window: window, Align: align})
	}
	first := fixed(10, "1m", "first_hit")
	sliding := mustCompile(t, Spec{Name: "s", Algorithm: "sliding_window", Limit: 10, Window: "1m"})
	seats, none := mustCompile(t, Spec{Name: "a", Algorithm: "allocation", Limit: 10}), mustCompile(t, Spec{Name: "a", Algorithm: "allocation"})
	past := []string{ // their units
		"lowered window", "closed and used", "cost 0 on closed", "lowered burst", "burst 0 and used", "closed and missing", "beyond 64 bits missing",
		"lowered first hit", "lowered sliding", "lowered allocation",
	}
	for name, c := range map[string]struct {
		limit                        *Limit
		bucket                       bucket
		after, cost                  int64 // after: the instant, from testEpoch on
		used, remaining, retry, back int64 // back: reset, from testEpoch on
	}{
		"untouched window":       {window, bucket{0, 1}, 0, 11, 0, 10, Never, 0},
		"window":                 {window, bucket{4, 1}, 0, 7, 4, 6, 60 * s, 60 * s},
		"one that fits":          {window, bucket{4, 1}, 0, 6, 4, 6, 0, 60 * s},
		"full window":            {window, bucket{10, 1}, 0, 1, 10, 0, 60 * s, 60 * s},
		"full window, later":     {window, bucket{10, 1}, 60*s - 1, 1, 10, 0, 1, 60 * s},
		"lowered window":         {window, bucket{25, 1}, 0, 1, 25, 0, 60 * s, 60 * s},
		"closed window":          {closed, bucket{0, 1}, 0, 1, 0, 0, Never, 0},
		"closed and used":        {closed, bucket{3, 1}, 0, 1, 3, 0, Never, 60 * s},
		"cost 0 on closed":       {closed, bucket{3, 1}, 0, 0, 3, 0, 0, 60 * s},
		"untouched bucket":       {tokens, bucket{0, 1}, 0, 11, 0, 10, Never, 0},
		"bucket":                 {tokens, bucket{3 * tokens.scale, 1}, 0, 8, 3, 7, s, 3 * s},
		"bucket between":         {tokens, bucket{3*tokens.scale - 1, 1}, 0, 8, 3, 7, s - 1, 3*s - 1},
		"bucket just refilled":   {tokens, bucket{1, 1}, 0, 10, 1, 9, 1, 1},
		"empty bucket":           {tokens, bucket{10 * tokens.scale, 1}, 0, 1, 10, 0, s, 10 * s},
		"lowered burst":          {tokens, bucket{25 * tokens.scale, 1}, 0, 1, 10, 0, 16 * s, 25 * s},
		"burst 0":                {empty, bucket{0, 1}, 0, 1, 0, 0, Never, 0},
		"burst 0 and used":       {empty, bucket{2 * empty.scale, 1}, 0, 1, 0, 0, Never, 2 * s},
		"closed bucket":          {shut, bucket{0, 1}, 0, 1, 0, 0, Never, 0},
		"closed and missing":     {shut, bucket{5, 1}, 0, 1, 0, 0, Never, 0},
		"longer than can be":     {slow, bucket{slow.capacity, 1}, 0, 1, 29166, 0, MaxWindow, NoReset - testEpoch},
		"beyond 64 bits missing": {tokens, bucket{math.MaxInt64, 1}, 0, 1, 10, 0, math.MaxInt64 - 9*tokens.scale, NoReset - testEpoch},
		"untouched first hit":    {first, bucket{0, testEpoch}, 0, 11, 0, 10, Never, 0},
		"first hit":              {first, bucket{4, testEpoch - 20*s}, 0, 7, 4, 6, 40 * s, 40 * s},
		"first hit just now":     {first, bucket{10, testEpoch}, 0, 1, 10, 0, 60 * s, 60 * s},
		"lowered first hit":      {first, bucket{25, testEpoch - 60*s + 1}, 0, 1, 25, 0, 1, 1},
		"untouched sliding":      {sliding, bucket{0, 0}, 20 * s, 11, 0, 10, Never, 20 * s},
		"sliding":                {sliding, bucket{4, 0}, 20 * s, 9, 4, 6, 40*s + 30*s + 1, 60*s + 45*s + 1},
		"sliding that fades":     {sliding, bucket{0, 10}, 0, 1, 10, 0, 1, 54*s + 1},
		"sliding of both":        {sliding, bucket{4, 6}, 30 * s, 4, 7, 3, 1, 60*s + 45*s + 1},
		"sliding, not yet":       {sliding, bucket{4, 6}, 30 * s, 9, 7, 3, 30*s + 30*s + 1, 60*s + 45*s + 1},
		"sliding, at the end":    {sliding, bucket{4, 6}, 30 * s, 6, 7, 3, 20*s + 1, 60*s + 45*s + 1},
		"sliding has faded":      {sliding, bucket{0, 1}, 1, 10, 0, 10, 0, 1},
		"sliding, last µs":       {sliding, bucket{0, 10}, 54 * s, 10, 1, 9, 1, 54*s + 1},
		"lowered sliding":        {sliding, bucket{25, 30}, 30 * s, 10, 40, 0, 30*s + 57600001, 60*s + 57600001},
		"untouched allocation":   {seats, bucket{0, 1}, 5, 11, 0, 10, Never, 5},
		"allocation":             {seats, bucket{4, 1}, 0, 7, 4, 6, Never, NoReset - testEpoch},
		"lowered allocation":     {seats, bucket{25, 1}, 0, 1, 25, 0, Never, NoReset - testEpoch},
		"closed allocation":      {none, bucket{0, 1}, 0, 1, 0, 0, Never, 0},
		"day":                    {fixed(10, "calendar_day", ""), bucket{10, 1}, 5, 1, 10, 0, day - 5, day},
		"week":                   {fixed(10, "calendar_week", ""), bucket{10, 1}, 5, 1, 10, 0, day - 5, day},
		"month":                  {fixed(10, "calendar_month", ""), bucket{10, 1}, 5, 1, 10, 0, 31*day - 5, 31 * day},
		"year":                   {fixed(10, "calendar_year", ""), bucket{10, 1}, 5, 1, 10, 0, 306*day - 5, 306 * day},
		"billing period":         {fixed(10, "billing_period", ""), bucket{10, 1}, 0, 1, 10, 0, 30*day + 17*60*s, 30*day + 17*60*s},
		"above a calendar's":     {fixed(10, "calendar_day", ""), bucket{10, 1}, 0, 11, 10, 0, Never, day},
	} {
		if c.limit.refills { // as each one that stands
			c.bucket.aux = ratedBy(c.limit.Limit)
		}
		d := Decision{Target: testTarget(1, 1, 1, c.limit), At: testEpoch + c.after, Cost: c.cost, buckets: []bucket{c.bucket}}
		want := View{Limit: c.limit, Used: c.used, Remaining: c.remaining, RetryAfter: c.retry, ResetAt: testEpoch + c.back, Exceeded: slices.Contains(past, name)}
		if got := d.View(0); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if got := d.RetryAfter(); got != c.retry {
			t.Errorf("%s: to be retried after %d, want %d", name, got, c.retry)
		}
		if d.Allowed = true; d.View(0).RetryAfter != 0 || d.RetryAfter() != 0 {
			t.Errorf("%s: an admitted hit is to be retried", name)
		}
	}
}

// TestRetryIsTheLongest of all limits, and Never when it is one's.
func TestRetryIsTheLongest(t *testing.T) {
	second, minute, closed := windowLimit(t, "s", 1, "1s"), windowLimit(t, "m", 2, "1m"), windowLimit(t, "c", 0, "1s")
	target := withCounter(testTarget(1, 1, 1, second, minute), "ip=1", closed)
	d := Decision{Target: target, At: testEpoch, Cost: 1, buckets: []bucket{{1, 1}, {2, 1}, {0, 1}}}
	if got := d.RetryAfter(); got != Never {
		t.Errorf("beside a closed one: %d", got)
	}
	d.Target, d.buckets = testTarget(1, 1, 1, second, minute), []bucket{{1, 1}, {2, 1}}
	if got := d.RetryAfter(); got != 60e6 {
		t.Errorf("of a second and a minute: %d", got)
	}
	if target.NumLimits() != 3 || target.Limit(0) != second || target.Limit(1) != minute || target.Limit(2) != closed {
		t.Error("the limits' order is not that of the counters")
	}
	if target.DenyOutage() {
		t.Error("nothing denies in an outage")
	}
	deny := mustCompile(t, Spec{Name: "d", Algorithm: "fixed_window", Limit: 1, Window: "1s", OnOutage: "deny"})
	if !withCounter(target, "ip=2", second, deny).DenyOutage() {
		t.Error("any deny wins")
	}
}

// TestEditedBucketKeepsWhatWasUsed: up to the edit a token bucket came back at the rate it
// had, from then on at the new one.
func TestEditedBucketKeepsWhatWasUsed(t *testing.T) {
	hour := int64(3600e6)
	for name, c := range map[string]struct {
		was, is       int64 // limits, per hour; the burst is 1000
		edited, asked int64 // after all 1000 were used
		used          int64
	}{
		"full again, then lowered":    {1000, 1, 10 * hour, 10 * hour, 0},
		"half full, lowered":          {1000, 1, hour / 2, hour / 2, 500},
		"half full, lowered, later":   {1000, 10, hour / 2, hour/2 + 10*hour, 400},
		"half full, raised":           {1000, 1e6, hour / 2, hour / 2, 500},
		"half full, raised, a second": {1000, 3600, hour / 2, hour/2 + 100e6, 400},
		"half full, closed":           {1000, 0, hour / 2, hour / 2, 0},
		"edited before the charge":    {1000, 500, -hour, hour, 500},
	} {
		limit := func(n int64) *Limit {
			if n == 0 {
				return bucketLimit(t, "a", 0, "1h", 0)
			}
			return bucketLimit(t, "a", n, "1h", 1000)
		}
		rates := Rates{{Always, c.was}, {testEpoch + c.edited, c.is}}
		before, after := testTarget(1, 1, 1, limit(c.was)), testTarget(1, 1, 2, limit(c.is).WithRates(rates))
		_, rows := decideOn(before, []Row{{}}, testEpoch, 1000)
		d := Judge(after, rows, testEpoch+c.asked, 0)
		if got := d.View(0).Used; got != c.used {
			t.Errorf("%s: %d used, want %d", name, got, c.used)
		}
	}
}
