package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// Counters that are ahead of the clock: the refusals say how long to wait from now on, and are counted
// as ahead. quotad repair clock brings the counters back beside the running node, once, and no unit
// that was charged is given away.
func TestRepairClock(t *testing.T) {
	t.Parallel()
	awayFromHoursEnd(t)
	n := start(t, "")
	n.setUp(`{"name":"l","meter":"requests","algorithm":"fixed_window","limit":10,"window":"1d"}`)
	env := map[string]string{"QUOTAD_DATABASE_URL": n.databaseURL}
	repair := func(args ...string) (r repaired) {
		t.Helper()
		code, out, errs := cli(t, env, append([]string{"repair", "clock"}, args...)...)
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
			t.Fatalf("code %d: %s%s", code, out, errs)
		}
		return r
	}
	if r := repair(); r.Ahead != 0 || r.Brought != 0 || r.Offset < -1 || r.Offset > 1 {
		t.Errorf("%+v", r)
	}
	n.hit(10).is(200)
	// As a clock that was two days ahead for a while leaves them.
	const day = 24 * 3600
	execute(t, n.databaseURL, "UPDATE counters SET at = at + 172800000000, version = version + 1")
	ends := time.Now().Truncate(24 * time.Hour).Add(3 * day * time.Second) // of the window that the counter is in
	wait := func(end time.Time) {
		t.Helper()
		before := time.Until(end).Seconds()
		a := n.hit(1).is(429)
		got, err := strconv.Atoi(a.header.Get("Retry-After"))
		if after := time.Until(end).Seconds(); err != nil || float64(got) < after-2 || float64(got) > before+3 {
			t.Errorf("Retry-After: %d, want %.0f to %.0f", got, after, before)
		}
	}
	refused := func(end time.Time) {
		t.Helper()
		testkit.Eventually(t, "the node sees the row", func() bool {
			a := n.hit(1).is(429)
			got, _ := strconv.Atoi(a.header.Get("Retry-After"))
			left := float64(got) - time.Until(end).Seconds()
			return left > -3 && left < 3
		})
	}
	refused(ends)
	for range 5 { // from memory, too
		wait(ends)
	}
	metrics := string(n.do("GET", "/metrics", "").is(200).raw)
	ahead := int64(0)
	for line := range strings.Lines(metrics) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "quotad_engine_ahead_total "); ok {
			ahead, _ = strconv.ParseInt(text, 10, 64)
		}
	}
	if ahead < 6 {
		t.Errorf("%d hits were counted as ahead", ahead)
	}
	if said := strings.Count(n.log.String(), "quotad repair clock"); said < 1 || said > 2 {
		t.Errorf("the log says it %d times:\n%s", said, n.log)
	}
	charged := query[string](t, n.databaseURL, "SELECT string_agg(concat(hour, ' ', units, ' ', total), ',') FROM counters")
	if r := repair("--dry-run"); r.Ahead != 1 || r.Brought != 0 || r.Furthest < 2*day-60 || r.Furthest > 2*day {
		t.Errorf("%+v", r)
	}
	wait(ends)
	if r := repair(); r.Ahead != 1 || r.Brought != 1 || r.Left != 0 {
		t.Errorf("%+v", r)
	}
	if r := repair(); r.Ahead != 0 || r.Brought != 0 {
		t.Errorf("again: %+v", r)
	}
	if now := query[string](t, n.databaseURL, "SELECT string_agg(concat(hour, ' ', units, ' ', total), ',') FROM counters"); now != charged {
		t.Errorf("charged and booked are %s, and were %s", now, charged)
	}
	refused(time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)) // all ten are used today
	if code, out, _ := cli(t, env, "reconcile"); code != 0 {
		t.Error(out)
	}
}
