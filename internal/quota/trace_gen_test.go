package quota

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/quota/model"
	"quotad/internal/testkit/quotatest"
)

// traceGen draws traces. What it draws is likely to be near an edge: costs near what is
// left, instants near the ends of windows and hours, limits near what can be held.
type traceGen struct {
	rt    *rapid.T
	sql   bool // for a database: batches and looks too
	steps int

	trace   trace
	now     int64
	targets [][]int // of each plan, by index in the trace
	plan    tracePlan
	change  int64
	edited  int64 // when the limits that change do so, µs
}

// tracePlan is the limits of one change, the customer's own and those per value, and the
// customer's calendar.
type tracePlan struct {
	own, per []traceLimit
	calendar *traceCalendar
}

func drawTrace(rt *rapid.T, sql bool, most int) *trace {
	g := &traceGen{rt: rt, sql: sql, steps: rapid.IntRange(1, most).Draw(rt, "steps")}
	g.now = quotatest.Epoch + rapid.SampledFrom([]int64{0, 1, 3_599_999_999, 17 * 60e6, -1}).Draw(rt, "start")
	g.plan.own = g.limits(nil, 1)
	g.plan.calendar = g.calendar()
	if rapid.IntRange(0, 2).Draw(rt, "per") == 0 {
		g.plan.per = g.limits(nil, 0)
	}
	g.addPlan()
	for range g.steps {
		if rapid.IntRange(0, 5).Draw(rt, "edit") == 0 {
			what := rapid.SampledFrom([]string{"limits", "limits", "calendar", "both"}).Draw(rt, "edited")
			g.edited = rapid.SampledFrom([]int64{g.now, g.now, g.now - 1e6, 0, g.now + 1e6}).Draw(rt, "edited at")
			if what != "calendar" {
				g.plan.own = g.limits(g.plan.own, 1)
				g.plan.per = g.limits(g.plan.per, 0)
			}
			if what != "limits" {
				g.plan.calendar = g.calendar()
			}
			g.addPlan()
		}
		g.addStep()
	}
	return &g.trace
}

func (g *traceGen) chance(label string, of int) bool {
	return rapid.IntRange(0, of-1).Draw(g.rt, label) == 0
}

var traceWindows = []int64{1, 2, 3, 7, 1000, 999_983, 1e6, 60e6, 3600e6, 86400e6, 7 * 86400e6, model.MaxWindow}

var traceNumbers = []int64{0, 1, 2, 3, 7, 10, 60, 97, 1000, 1e6, 1e9, 1e12, 999_999_999_989, model.MaxNumber - 1, model.MaxNumber}

func (g *traceGen) number(label string) int64 {
	if g.chance(label+" any", 3) {
		return rapid.Int64Range(0, model.MaxNumber).Draw(g.rt, label)
	}
	return rapid.SampledFrom(traceNumbers).Draw(g.rt, label)
}

// traceZones have no jumps, jumps by an hour and by half an hour, at and over midnight,
// and offsets that are no whole hours.
var traceZones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu",
	"America/Havana", "Africa/Cairo", "Asia/Beirut", "Africa/Casablanca", "Pacific/Kiritimati",
}

// calendar draws a customer's; anchors at ends of months, in a gap and in an overlap, and
// off the hour.
func (g *traceGen) calendar() *traceCalendar {
	c := &traceCalendar{
		Zone: rapid.SampledFrom(traceZones).Draw(g.rt, "zone"),
		Anchor: rapid.SampledFrom([]string{
			"2026-01-31T00:17:00", "2026-03-01T00:00:00", "2025-10-26T02:30:00", "2026-03-29T02:30:00",
			"1999-12-31T23:59:59",
		}).Draw(g.rt, "anchor"),
		Unit:  rapid.SampledFrom([]string{"day", "week", "month", "month", "year"}).Draw(g.rt, "unit"),
		Count: rapid.SampledFrom([]int{1, 1, 1, 2, 5}).Draw(g.rt, "count"),
	}
	return c
}

var traceAlgorithms = []string{
	"fixed_window", "fixed_window", "calendar", "calendar", "first_hit", "sliding_window", "sliding_window",
	"token_bucket", "token_bucket", "allocation", "sliding_log", "sliding_log",
}

// limit draws a limit that compiles.
func (g *traceGen) limit(name string) traceLimit {
	for {
		l := traceLimit{Name: name, Limit: g.number("limit"), Mode: rapid.SampledFrom([]string{"", "", "", "hard", "soft", "shadow"}).Draw(g.rt, "mode")}
		g.algorithm(&l)
		if _, bad := model.Compile(l.spec()); bad == nil {
			return l
		}
	}
}

// algorithm gives a limit one of the algorithms, with a window.
func (g *traceGen) algorithm(l *traceLimit) {
	l.Window, l.WindowUS, l.Burst, l.Align, l.Precision = "", 0, nil, "", 0
	l.Algorithm = rapid.SampledFrom(traceAlgorithms).Draw(g.rt, "algorithm")
	switch l.Algorithm {
	case "fixed_window":
		l.Align = rapid.SampledFrom([]string{"", "clock"}).Draw(g.rt, "align")
	case "first_hit":
		l.Algorithm, l.Align = "fixed_window", "first_hit"
	case "calendar":
		l.Algorithm = "fixed_window"
		l.Window = rapid.SampledFrom(calendarNames).Draw(g.rt, "window")
	case "token_bucket":
		g.burst(l)
	}
	g.window(l)
	if l.Algorithm == "sliding_log" {
		g.precision(l)
	}
}

// precision gives a log one: exact where the limit is small, or blocks of which the
// window holds few, as many as it may, or no whole number.
func (g *traceGen) precision(l *traceLimit) {
	if l.Limit > 1000 && g.chance("small", 2) {
		l.Limit %= 1000 + 1
	}
	if l.Limit <= 1000 && g.chance("exact", 2) {
		return
	}
	part := rapid.SampledFrom([]int64{1, 2, 3, 7, 60, 999, 1000}).Draw(g.rt, "blocks")
	l.Precision = max(1, (l.WindowUS+part-1)/part)
}

// window gives a limit another window, if it has one.
func (g *traceGen) window(l *traceLimit) {
	switch {
	case l.Window != "":
		l.Window = rapid.SampledFrom(calendarNames).Draw(g.rt, "window")
	case l.Algorithm == "allocation":
	case g.chance("odd window", 4):
		l.WindowUS = rapid.Int64Range(1, 1e12).Draw(g.rt, "window")
	default:
		l.WindowUS = rapid.SampledFrom(traceWindows).Draw(g.rt, "window")
	}
}

// align changes a fixed window's, where it has one.
func (l *traceLimit) align() {
	if l.Algorithm != "fixed_window" || l.Window != "" {
		return
	}
	if l.Align == "first_hit" {
		l.Align = ""
	} else {
		l.Align = "first_hit"
	}
}

func (g *traceGen) burst(l *traceLimit) {
	l.Burst = nil
	if g.chance("own burst", 2) {
		burst := g.number("burst")
		l.Burst = &burst
	}
}

// relimit gives a limit another number, or the one that it had before.
func (g *traceGen) relimit(l *traceLimit) {
	before := l.Limit
	if n := len(l.Rates); n > 1 && g.chance("put back", 2) {
		l.Limit = l.Rates[n-2].Limit
	} else {
		l.Limit = g.number("limit")
	}
	if l.Algorithm != "token_bucket" {
		return
	}
	if l.Rates == nil {
		l.Rates = l.Rates.Then(model.Always, before)
	}
	l.Rates = l.Rates.Then(g.edited, l.Limit)
}

// limits edits a list of limits, or draws a new one of least to four.
func (g *traceGen) limits(old []traceLimit, least int) []traceLimit {
	names := []string{"a", "b", "c", "d"}
	var next []traceLimit
	for _, l := range old {
		switch rapid.SampledFrom([]string{"keep", "keep", "limit", "limit", "burst", "window", "align", "algorithm", "mode", "new", "remove"}).Draw(g.rt, "change") {
		case "limit":
			g.relimit(&l)
		case "burst":
			if l.Algorithm == "token_bucket" {
				g.burst(&l)
			}
		case "window":
			g.window(&l)
		case "align":
			l.align()
		case "algorithm":
			g.algorithm(&l)
			l.Rates = nil
		case "mode":
			l.Mode = rapid.SampledFrom([]string{"hard", "soft", "shadow"}).Draw(g.rt, "mode")
		case "new":
			l = g.limit(l.Name)
		case "remove":
			continue
		}
		if _, bad := model.Compile(l.spec()); bad == nil {
			next = append(next, l)
		}
	}
	if len(next) > 1 && g.chance("reorder", 2) {
		next = rapid.Permutation(next).Draw(g.rt, "order")
	}
	want := rapid.IntRange(least, 4).Draw(g.rt, "limits")
	if len(old) > 0 && len(next) >= least {
		want = len(next) + rapid.IntRange(0, 1).Draw(g.rt, "more")
	}
	for _, name := range names {
		taken := slices.ContainsFunc(next, func(l traceLimit) bool { return l.Name == name })
		if len(next) < want && !taken {
			next = append(next, g.limit(name))
		}
	}
	return next
}

// addPlan adds the targets that the present plan makes: the customer's own, with one or
// two values of an attribute, and one of them resolved twice.
func (g *traceGen) addPlan() {
	g.change += 10
	own := traceCounter{Limits: g.plan.own}
	shapes := [][]traceCounter{{own}, {own}}
	if len(g.plan.per) > 0 {
		one, two := traceCounter{"ip=1", g.plan.per}, traceCounter{"ip=2", g.plan.per}
		shapes = append(shapes, []traceCounter{own, one}, []traceCounter{own, two}, []traceCounter{own, one, two})
	}
	var these []int
	for _, shape := range shapes {
		these = append(these, len(g.trace.Targets))
		g.trace.Targets = append(g.trace.Targets, traceTarget{1, g.change, g.plan.calendar, shape})
	}
	these = append(these, len(g.trace.Targets)) // another meter of the same customer
	g.trace.Targets = append(g.trace.Targets, traceTarget{2, g.change, g.plan.calendar, shapes[0]})
	g.targets = append(g.targets, these)
}

func (g *traceGen) addStep() {
	step := traceStep{How: "one"}
	most := 2
	if g.sql {
		step.How = rapid.SampledFrom([]string{"one", "all", "batch", "batch", "look"}).Draw(g.rt, "how")
		most = 12
	}
	sameTarget := g.chance("same target", 2)
	for range rapid.IntRange(1, most).Draw(g.rt, "hits") {
		if len(step.Hits) > 0 && sameTarget {
			step.Hits = append(step.Hits, g.hit(step.Hits[0].Target, step.How))
			continue
		}
		plan := g.targets[len(g.targets)-1]
		if len(g.targets) > 1 && g.chance("stale", 8) {
			plan = g.targets[len(g.targets)-2]
		}
		step.Hits = append(step.Hits, g.hit(rapid.SampledFrom(plan).Draw(g.rt, "target"), step.How))
	}
	g.tick(step.Hits[0].Target)
	step.AtUS = g.now
	g.trace.Steps = append(g.trace.Steps, step)
}

// someLimit is a limit of a target, to be near the edges of.
func (g *traceGen) someLimit(target int) traceLimit {
	counters := g.trace.Targets[target].Counters
	limits := rapid.SampledFrom(counters).Draw(g.rt, "counter").Limits
	return rapid.SampledFrom(limits).Draw(g.rt, "near")
}

func (g *traceGen) hasSoft(target int) bool {
	return slices.ContainsFunc(g.trace.Targets[target].Counters, func(c traceCounter) bool {
		return slices.ContainsFunc(c.Limits, func(l traceLimit) bool { return l.Mode == "soft" })
	})
}

func (g *traceGen) hit(target int, how string) traceHit {
	l := g.someLimit(target)
	whole := l.Limit
	if l.Burst != nil {
		whole = *l.Burst
	}
	cost := rapid.SampledFrom([]int64{1, 1, 1, 2, 3, whole / 5, whole / 3, whole / 2, whole - 1, whole, whole + 1, 0, -1}).Draw(g.rt, "cost")
	if cost == -1 {
		cost = rapid.Int64Range(1, model.MaxNumber).Draw(g.rt, "any cost")
	}
	if g.hasSoft(target) {
		cost = min(cost, 100) // beyond what 64 bits can count no definition holds
	}
	if cost = min(max(cost, 0), model.MaxNumber); cost == 0 && how != "one" && how != "look" {
		cost = 1
	}
	return traceHit{target, cost}
}

// tick moves the clock: by a little, back, or to an edge of a limit's window, a bucket's
// refill, an hour, a day or a period of the customer's calendar.
func (g *traceGen) tick(target int) {
	l := g.someLimit(target)
	window := max(1, l.WindowUS)
	periods := g.trace.Targets[target].Calendar.periods()
	to := g.now
	switch rapid.SampledFrom([]string{"stay", "little", "refill", "fade", "window", "whole window", "hour", "back", "far", "calendar"}).Draw(g.rt, "tick") {
	case "little":
		to += rapid.Int64Range(0, 1e7).Draw(g.rt, "µs")
	case "refill":
		if l.Limit > 0 {
			units := rapid.Int64Range(1, 5).Draw(g.rt, "units")
			to += min(units*(window/l.Limit+1), 1e14)
		}
	case "fade": // into the window, where some of the one before still counts
		to += window - to%window + window/rapid.Int64Range(1, 10).Draw(g.rt, "part")
	case "window":
		to += window - to%window
	case "whole window":
		to += window
	case "hour":
		_, to = periods.Hour(to)
	case "back":
		to -= rapid.SampledFrom([]int64{1, 1000, window, 3600e6, 86400e6}).Draw(g.rt, "back")
	case "far":
		to += rapid.Int64Range(0, 100*86400e6).Draw(g.rt, "far")
	case "calendar":
		name := l.Window
		if name == "" {
			name = rapid.SampledFrom(calendarNames).Draw(g.rt, "whose end")
		}
		_, to = naiveWindow(name, periods, to)
	}
	to += rapid.SampledFrom([]int64{0, 0, 0, -1, 1}).Draw(g.rt, "edge")
	g.now = min(max(to, 1e12), 4e15)
}

// ofRound has a round draw other traces than the rounds before it: all have one seed.
func ofRound(rt *rapid.T, round int) {
	for range round {
		rapid.Uint64().Draw(rt, "of the round")
	}
}

// TestTracesModel: the Go twin is what the contract defines, to the µs and the unit.
func TestTracesModel(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	for i := range rounds {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				ofRound(rt, i)
				tr := drawTrace(rt, false, 30)
				if err := tr.runModel(); err != nil {
					rt.Fatalf("%v; the trace is in %s", err, tr.keep(t, err))
				}
			})
		})
	}
}

var calendarNames = []string{"billing_period", "calendar_day", "calendar_month", "calendar_week", "calendar_year"}
