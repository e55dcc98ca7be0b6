package model

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]int64{
		"1us": 1, "1ms": 1000, "90s": 90e6, "1m": 60e6, "1h": 3600e6, "1d": 86400e6, "007s": 7e6,
		"3660d": MaxWindow, "316224000000000us": MaxWindow,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "0s", "-1h", "+1h", "1y", "1w", "1M", "1", "s", "1.5h", "1 h", " 1h", "1h ", "1h30m", "1H", "1e3s", "٣s", "1µs",
		"3661d", "316224000000001us", "99999999999999999999s", "9223372036854775807d", "0x1s", "1_000s", "1h\x00",
	} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

var durationForm = regexp.MustCompile(`^([0-9]+)(us|ms|s|m|h|d)$`)

func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"1us", "90s", "3660d", "3661d", "0s", "-1h", "1y", "", "99999999999999999999d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseDuration(text)
		form := durationForm.FindStringSubmatch(text)
		if err != nil {
			if form == nil {
				return
			}
			n, bad := strconv.ParseInt(form[1], 10, 64)
			if bad == nil && n > 0 && n <= MaxWindow/durationUnits[form[2]] {
				t.Fatalf("%q is refused", text)
			}
			return
		}
		if form == nil || got < 1 || got > MaxWindow || got%durationUnits[form[2]] != 0 {
			t.Fatalf("%q is %d", text, got)
		}
		if again, err := ParseDuration(strconv.FormatInt(got, 10) + "us"); err != nil || again != got {
			t.Fatalf("%q is %d, in µs %d, %v", text, got, again, err)
		}
	})
}

func TestCompile(t *testing.T) {
	good := Spec{Name: "hourly", Algorithm: "token_bucket", Limit: 10, Window: "1h"}
	with := func(change func(*Spec)) Spec {
		s := good
		change(&s)
		return s
	}
	fixed := func(window, align string) Spec {
		return Spec{Name: "a", Algorithm: "fixed_window", Limit: 10, Window: window, Align: align}
	}
	for name, c := range map[string]struct {
		spec   Spec
		fields string // of the errors; empty: it compiles
	}{
		"good":             {good, ""},
		"fixed":            {Spec{Name: "a", Algorithm: "fixed_window", Limit: 0, Window: "1d", Align: "clock", Mode: "hard", OnOutage: "deny"}, ""},
		"largest":          {Spec{Name: "a", Algorithm: "fixed_window", Limit: MaxNumber, Window: "3660d"}, ""},
		"closed bucket":    {with(func(s *Spec) { s.Limit = 0 }), ""},
		"burst 0":          {with(func(s *Spec) { s.Burst = ptr(int64(0)) }), ""},
		"longest name":     {with(func(s *Spec) { s.Name = strings.Repeat("x", 200) }), ""},
		"no name":          {with(func(s *Spec) { s.Name = "" }), "name"},
		"long name":        {with(func(s *Spec) { s.Name = strings.Repeat("x", 201) }), "name"},
		"name of a place":  {with(func(s *Spec) { s.Name = ".." }), "name"},
		"name of here":     {with(func(s *Spec) { s.Name = "." }), "name"},
		"name with space":  {with(func(s *Spec) { s.Name = "a b" }), "name"},
		"name with line":   {with(func(s *Spec) { s.Name = "a\n" }), "name"},
		"name with NUL":    {with(func(s *Spec) { s.Name = "a\x00" }), "name"},
		"negative":         {with(func(s *Spec) { s.Limit = -1 }), "limit"},
		"huge":             {with(func(s *Spec) { s.Limit = MaxNumber + 1 }), "limit"},
		"no algorithm":     {with(func(s *Spec) { s.Algorithm = "" }), "algorithm"},
		"other algorithm":  {with(func(s *Spec) { s.Algorithm = "leaky_bucket" }), "algorithm"},
		"no window":        {with(func(s *Spec) { s.Window = "" }), "window"},
		"zero window":      {with(func(s *Spec) { s.Window = "0s" }), "window"},
		"long window":      {with(func(s *Spec) { s.Window = "1y" }), "window"},
		"calendar":         {with(func(s *Spec) { s.Window = "calendar_month" }), "window"},
		"negative burst":   {with(func(s *Spec) { s.Burst = ptr(int64(-1)) }), "burst"},
		"huge burst":       {with(func(s *Spec) { s.Burst = ptr(MaxNumber + 1) }), "burst"},
		"burst on closed":  {with(func(s *Spec) { s.Limit, s.Burst = 0, ptr(int64(1)) }), "burst"},
		"burst of a fixed": {with(func(s *Spec) { s.Algorithm, s.Burst = "fixed_window", ptr(int64(1)) }), "burst"},
		"align of bucket":  {with(func(s *Spec) { s.Align = "clock" }), "align"},
		"first_hit":        {fixed("1h", "first_hit"), ""},
		"other align":      {fixed("1h", "First_hit"), "align"},
		"calendar day":     {fixed("calendar_day", ""), ""},
		"calendar week":    {fixed("calendar_week", ""), ""},
		"calendar month":   {fixed("calendar_month", ""), ""},
		"calendar year":    {fixed("calendar_year", ""), ""},
		"billing period":   {fixed("billing_period", ""), ""},
		"calendar, clock":  {fixed("calendar_day", "clock"), ""},
		"calendar, first":  {fixed("calendar_day", "first_hit"), "align"},
		"period, first":    {fixed("billing_period", "first_hit"), "align"},
		"no such calendar": {fixed("calendar_hour", ""), "window"},
		"calendar case":    {fixed("Calendar_day", ""), "window"},
		"calendar space":   {fixed("calendar_day ", ""), "window"},
		"first, no window": {fixed("", "first_hit"), "window"},
		"sliding":          {with(func(s *Spec) { s.Algorithm = "sliding_window" }), ""},
		"largest sliding":  {Spec{Name: "a", Algorithm: "sliding_window", Limit: MaxNumber, Window: "3660d"}, ""},
		"sliding calendar": {with(func(s *Spec) { s.Algorithm, s.Window = "sliding_window", "calendar_day" }), "window"},
		"sliding align":    {with(func(s *Spec) { s.Algorithm, s.Align = "sliding_window", "clock" }), "align"},
		"sliding burst":    {with(func(s *Spec) { s.Algorithm, s.Burst = "sliding_window", ptr(int64(1)) }), "burst"},
		"sliding, none":    {with(func(s *Spec) { s.Algorithm, s.Window = "sliding_window", "" }), "window"},
		"allocation":       {Spec{Name: "a", Algorithm: "allocation", Limit: MaxNumber, OnOutage: "deny"}, ""},
		"no allocation":    {Spec{Name: "a", Algorithm: "allocation"}, ""},
		"its window":       {Spec{Name: "a", Algorithm: "allocation", Limit: 1, Window: "1h"}, "window"},
		"its calendar":     {Spec{Name: "a", Algorithm: "allocation", Limit: 1, Window: "calendar_day"}, "window"},
		"its bad window":   {Spec{Name: "a", Algorithm: "allocation", Limit: 1, Window: "x"}, "window"},
		"its align":        {Spec{Name: "a", Algorithm: "allocation", Limit: 1, Align: "first_hit"}, "align"},
		"its burst":        {Spec{Name: "a", Algorithm: "allocation", Limit: 1, Burst: ptr(int64(1))}, "burst"},
		"no ttl":           {Spec{Name: "a", Algorithm: "concurrency", Limit: 1}, "ttl"},
		"long ttl":         {Spec{Name: "a", Algorithm: "concurrency", Limit: 1, TTL: "25h"}, "ttl"},
		"another's ttl":    {Spec{Name: "a", Algorithm: "allocation", Limit: 1, TTL: "1h"}, "ttl"},
		"other, calendar":  {with(func(s *Spec) { s.Algorithm, s.Window = "fixed", "calendar_day" }), "algorithm"},
		"other, window":    {with(func(s *Spec) { s.Algorithm, s.Window = "fixed", "1y" }), "algorithm window"},
		"precision":        {with(func(s *Spec) { s.Precision = "1us" }), "precision"},
		"log":              {Spec{Name: "a", Algorithm: "sliding_log", Limit: 1000, Window: "3660d"}, ""},
		"log, in blocks":   {Spec{Name: "a", Algorithm: "sliding_log", Limit: MaxNumber, Window: "1000s", Precision: "1s"}, ""},
		"log, one block":   {Spec{Name: "a", Algorithm: "sliding_log", Limit: MaxNumber, Window: "1s", Precision: "1s"}, ""},
		"log, too large":   {Spec{Name: "a", Algorithm: "sliding_log", Limit: 1001, Window: "1s"}, "precision"},
		"log, too fine":    {Spec{Name: "a", Algorithm: "sliding_log", Limit: 1001, Window: "1001s", Precision: "1s"}, "precision"},
		"log, too coarse":  {Spec{Name: "a", Algorithm: "sliding_log", Limit: 1, Window: "1s", Precision: "2s"}, "precision"},
		"log, no duration": {Spec{Name: "a", Algorithm: "sliding_log", Limit: 1, Window: "1s", Precision: "0s"}, "precision"},
		"log, no window":   {Spec{Name: "a", Algorithm: "sliding_log", Limit: 1}, "window"},
		"log, calendar":    {Spec{Name: "a", Algorithm: "sliding_log", Limit: 1, Window: "calendar_day"}, "window"},
		"log, burst":       {Spec{Name: "a", Algorithm: "sliding_log", Limit: 1, Window: "1s", Burst: ptr(int64(1))}, "burst"},
		"per":              {with(func(s *Spec) { s.Per = "ip" }), ""},
		"per, too long":    {with(func(s *Spec) { s.Per = strings.Repeat("a", 65) }), "per"},
		"per, no name":     {with(func(s *Spec) { s.Per = "a=b" }), "per"},
		"soft":             {with(func(s *Spec) { s.Mode = "soft" }), ""},
		"shadow":           {with(func(s *Spec) { s.Mode = "shadow" }), ""},
		"no mode":          {with(func(s *Spec) { s.Mode = "Soft" }), "mode"},
		"outage":           {with(func(s *Spec) { s.OnOutage = "maybe" }), "on_outage"},
		"all wrong": {
			Spec{Limit: -1, Precision: "1s", Per: "=", Mode: "x", OnOutage: "x", Align: "x", Burst: ptr(int64(1))},
			"name limit algorithm window burst align precision per mode on_outage",
		},
		"cannot be held": {with(func(s *Spec) { s.Limit, s.Window = MaxNumber, "1d" }), "limit"},
		"burst not held": {with(func(s *Spec) { s.Limit, s.Window, s.Burst = 1, "3660d", ptr(MaxNumber) }), "burst"},
	} {
		l, bad := Compile(c.spec)
		var fields []string
		for _, e := range bad {
			fields = append(fields, e.Field)
			if e.Detail == "" || !strings.Contains(bad.Error(), e.Field+": "+e.Detail) {
				t.Errorf("%s: an error without a detail: %v", name, bad)
			}
		}
		if got := strings.Join(fields, " "); got != c.fields || (l == nil) != (c.fields != "") {
			t.Errorf("%s: errors in %q, want %q (%v)", name, got, c.fields, bad)
		}
		if l == nil {
			continue
		}
		_, named := calendarWindows[c.spec.Window]
		if l.DenyOutage != (c.spec.OnOutage == "deny") || l.Algorithm.String() != c.spec.Algorithm || l.WindowText != c.spec.Window ||
			l.Calendar != named || (l.Window == 0) != (named || c.spec.Window == "") {
			t.Errorf("%s: %+v compiles to %+v", name, c.spec, l)
		}
	}
}

// What is said of a window names what would do instead.
func TestWindowsAreNamed(t *testing.T) {
	_, bad := Compile(Spec{Name: "a", Algorithm: "fixed_window", Limit: 1, Window: "calendar_hour"})
	for name := range calendarWindows {
		if !strings.Contains(bad.Error(), name) {
			t.Errorf("%s is not said to be one: %v", name, bad)
		}
	}
	for algorithm, word := range map[string]string{"sliding_window": "fixed_window", "token_bucket": "fixed_window", "allocation": "leave it out"} {
		_, bad := Compile(Spec{Name: "a", Algorithm: algorithm, Limit: 1, Window: "calendar_day"})
		if len(bad) != 1 || !strings.Contains(bad[0].Detail, word) {
			t.Errorf("%s: %v", algorithm, bad)
		}
	}
}

var suggested = regexp.MustCompile(`: (?:limit (\d+)|a burst of at most (\d+)) can be held$`)

// TestSuggestionsCompile: what a refusal names instead can be held, is no larger than what
// was asked for, and a burst is the largest that can.
func TestSuggestionsCompile(t *testing.T) {
	refused := 0
	rapid.Check(t, func(rt *rapid.T) {
		s := Spec{Name: "a", Algorithm: "token_bucket", Window: "3660d"}
		s.Limit = rapid.Int64Range(1, MaxNumber).Draw(rt, "limit")
		if rapid.Bool().Draw(rt, "own window") {
			s.Window = fmt.Sprintf("%dus", rapid.Int64Range(1e6, MaxWindow).Draw(rt, "window"))
		}
		if rapid.Bool().Draw(rt, "own burst") {
			s.Burst = ptr(rapid.Int64Range(0, MaxNumber).Draw(rt, "burst"))
		}
		l, bad := Compile(s)
		if bad == nil {
			if l.capacity/l.scale != l.Burst || l.Limit*(l.Window/gcd(l.Limit, l.Window)) != l.refill*l.Window {
				rt.Fatalf("%+v compiles to %+v", s, l)
			}
			return
		}
		refused++
		m := suggested.FindStringSubmatch(bad[0].Detail)
		if len(bad) != 1 || m == nil {
			rt.Fatalf("%+v: %v names nothing that can be held", s, bad)
		}
		again := s
		if m[1] != "" {
			again.Limit, _ = strconv.ParseInt(m[1], 10, 64)
			if again.Limit < 1 || again.Limit >= s.Limit || bad[0].Field != "limit" {
				rt.Fatalf("%+v: %v", s, bad)
			}
		} else {
			burst, _ := strconv.ParseInt(m[2], 10, 64)
			again.Burst = &burst
			above := s
			above.Burst = ptr(burst + 1)
			if _, bad := Compile(above); bad == nil {
				rt.Fatalf("%+v: a larger burst than %d can be held", s, burst)
			}
		}
		if _, bad := Compile(again); bad != nil {
			rt.Fatalf("%+v: told %v, and then %v", s, m[0], bad)
		}
	})
	if refused == 0 && !testing.Short() {
		t.Error("nothing was refused")
	}
}

// A bucket starts again with another name, algorithm, window or align, and with nothing else.
func TestLimitIdentity(t *testing.T) {
	spec := func(algorithm, window, align string, limit int64) *Limit {
		return mustCompile(t, Spec{Name: "a", Algorithm: algorithm, Limit: limit, Window: window, Align: align})
	}
	tokens, fixed, first := bucketLimit(t, "a", 10, "1h", 10), windowLimit(t, "a", 10, "1h"), spec("fixed_window", "1h", "first_hit", 10)
	day, seats := spec("fixed_window", "calendar_day", "", 10), spec("allocation", "", "", 10)
	for name, c := range map[string]struct {
		one, other *Limit
		same       bool
	}{
		"limit":              {tokens, bucketLimit(t, "a", 11, "1h", 10), true},
		"burst":              {tokens, bucketLimit(t, "a", 10, "1h", 3), true},
		"other words":        {tokens, bucketLimit(t, "a", 10, "60m", 10), true},
		"name":               {tokens, bucketLimit(t, "b", 10, "1h", 10), false},
		"window":             {tokens, bucketLimit(t, "a", 10, "2h", 10), false},
		"algorithm":          {tokens, fixed, false},
		"sliding":            {fixed, spec("sliding_window", "1h", "", 10), false},
		"said align":         {fixed, spec("fixed_window", "1h", "clock", 10), true},
		"align":              {fixed, first, false},
		"limit of first hit": {first, spec("fixed_window", "60m", "first_hit", 11), true},
		"its window":         {first, spec("fixed_window", "2h", "first_hit", 10), false},
		"calendar":           {spec("fixed_window", "1d", "", 10), day, false},
		"said clock":         {day, spec("fixed_window", "calendar_day", "clock", 10), true},
		"limit of a day":     {day, spec("fixed_window", "calendar_day", "", 11), true},
		"other calendar":     {day, spec("fixed_window", "calendar_week", "", 10), false},
		"period":             {spec("fixed_window", "calendar_month", "", 10), spec("fixed_window", "billing_period", "", 10), false},
		"allocation":         {seats, spec("allocation", "", "", 11), true},
		"allocation and day": {seats, day, false},
	} {
		if (c.one.ID == c.other.ID) != c.same || c.other.ID < 0 {
			t.Errorf("%s: %d and %d", name, c.one.ID, c.other.ID)
		}
	}
	// Stored buckets depend on them: these must never change.
	for want, l := range map[int64]*Limit{
		3012626798136017917: tokens,
		9121181605486650058: fixed,
		6519230715520961652: first,
		2026084750193807331: day,
		7253821801431091589: seats,
	} {
		if l.ID != want {
			t.Errorf("%s %s: %d, want %d", l.Algorithm, l.WindowText, l.ID, want)
		}
	}
}

func TestShard(t *testing.T) {
	// Stored keys depend on it: these must never change.
	for customer, want := range map[int64]int16{0: 0, 1: 485, 2: 138, 3: 240, 1 << 40: 1016, math.MaxInt64: 701, -1: 379} {
		if got := Shard(customer); got != want {
			t.Errorf("%d: %d, want %d", customer, got, want)
		}
	}
	const n = 1_000_000
	var seen [Shards]int
	for c := range int64(n) {
		seen[Shard(c)]++
	}
	for s, count := range seen { // ±6 standard deviations of an even spread
		if mean := float64(n) / Shards; math.Abs(float64(count)-mean) > 6*math.Sqrt(mean) {
			t.Errorf("shard %d has %d of %d customers", s, count, n)
		}
	}
}

// TestSuggestionsAtTheEdge: where one part in a unit more would just not be held.
func TestSuggestionsAtTheEdge(t *testing.T) {
	const window = 86400 * 1_000_000
	for d := int64(1); d <= window/9223; d++ {
		if window%d != 0 {
			continue
		}
		parts := window / d // in a unit, of a limit that shares d with the window
		limit := (MaxNumber/d - 1) * d
		for gcd(limit, window) != d {
			limit -= d
		}
		s := Spec{Name: "a", Algorithm: "token_bucket", Window: "1d", Limit: limit, Burst: ptr(math.MaxInt64 / parts)}
		if _, bad := Compile(s); bad != nil {
			t.Errorf("limit %d, burst %d can be held: %v", limit, *s.Burst, bad)
		}
		*s.Burst++
		_, bad := Compile(s)
		if bad == nil {
			t.Fatalf("limit %d, burst %d cannot be held", limit, *s.Burst)
		}
		m := suggested.FindStringSubmatch(bad[0].Detail)
		if m == nil || m[1] == "" {
			t.Fatalf("limit %d, burst %d: %v", limit, *s.Burst, bad)
		}
		s.Limit, _ = strconv.ParseInt(m[1], 10, 64)
		if _, again := Compile(s); again != nil {
			t.Errorf("told %v, and then %v", bad, again)
		}
	}
}
