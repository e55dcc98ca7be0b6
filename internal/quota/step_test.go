package quota

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"quotad/internal/postgres/pgtest"
)

// stepCase is one call of quotad_step_v2.
type stepCase struct {
	state          []int64
	since, instant int64
	target         *Target // its calendar
	limits         []*Limit
	sums           []int64
}

// want is what the Go twin makes of it.
func (c *stepCase) want() []int64 {
	run, spared, next := runOf(c.limits, c.state, c.since, c.sums, c.moment())
	return append([]int64{run, int64(spared)}, next...)
}

func (c *stepCase) moment() moment { return c.target.moment(c.instant) }

func (c *stepCase) run(ctx context.Context, conn *pgx.Conn) error {
	limits, _ := encodeLimits(nil, c.limits, c.moment())
	var got []int64
	err := conn.QueryRow(ctx, "SELECT quotad_step_v2($1, $2, $3, $4, $5, $6)", c.state, c.since, c.instant, c.target.Edited, limits, c.sums).Scan(&got)
	if err != nil {
		return fmt.Errorf("state %v of %d at %d, limits %v, sums %v: %w", c.state, c.since, c.instant, limits, c.sums, err)
	}
	if want := c.want(); !slices.Equal(got, want) {
		return fmt.Errorf("state %v of %d at %d, limits %v, sums %v: %v, the model says %v", c.state, c.since, c.instant, limits, c.sums, got, want)
	}
	run, spared, next := chargeRun(nil, c.limits, c.state, c.since, c.sums, c.moment())
	if run == 0 { // then there is nothing to be left
		got = got[:1]
	}
	if at := append([]int64{int64(run), int64(spared)}, next...); !slices.Equal(got, at[:len(got)]) {
		return fmt.Errorf("state %v of %d at %d, limits %v, sums %v: %v at once, the model says %v", c.state, c.since, c.instant, limits, c.sums, at, got)
	}
	return nil
}

// branchOf names the branch of quotad_step_v2 that a limit takes.
func branchOf(l *Limit) string {
	if _, ok := l.rules.(firstHitWindow); ok {
		return "first_hit"
	}
	if l.Calendar {
		return l.WindowText
	}
	return l.Algorithm.String()
}

// drawUnits is a number of units a bucket can hold, of a limit that may have been edited:
// none, few, about all, or any.
func drawUnits(rt *rapid.T, label string, whole int64) int64 {
	switch rapid.SampledFrom([]string{"zero", "few", "whole", "any", "most"}).Draw(rt, label) {
	case "few":
		return rapid.Int64Range(1, 100).Draw(rt, "few")
	case "whole":
		return max(0, whole-rapid.Int64Range(-1, 1).Draw(rt, "less"))
	case "any":
		return rapid.Int64Range(0, MaxNumber).Draw(rt, "units")
	case "most":
		return MaxNumber
	}
	return 0
}

// drawParts is a token bucket's level: up to all that 64 bits hold after an edit.
func drawParts(rt *rapid.T, l *Limit) int64 {
	switch rapid.SampledFrom([]string{"zero", "few", "whole", "any"}).Draw(rt, "level") {
	case "few":
		return rapid.Int64Range(1, 100).Draw(rt, "few")
	case "whole":
		return max(0, min(l.capacity, math.MaxInt64-1)-rapid.Int64Range(-1, 1).Draw(rt, "less"))
	case "any":
		return rapid.Int64Range(0, math.MaxInt64).Draw(rt, "parts")
	}
	return 0
}

// drawBucket is a bucket that an earlier charge, at since, may have left of a limit.
func drawBucket(rt *rapid.T, l *Limit, since int64) bucket {
	if l.Algorithm == TokenBucket {
		b := bucket{drawParts(rt, l), ratedBy(l.Limit)}
		switch rapid.SampledFrom([]string{"same", "same", "edited", "edited", "first version"}).Draw(rt, "limit then") {
		case "edited":
			b.aux = ratedBy(rapid.SampledFrom([]int64{0, 1, 7, l.Limit / 2, min(2*l.Limit, MaxNumber), MaxNumber}).Draw(rt, "limit"))
		case "first version":
			b.aux = rapid.SampledFrom([]int64{1, 3, 7, 1e6, 999_999_999_989, l.Window, MaxWindow}).Draw(rt, "scale")
		}
		return b
	}
	b := bucket{drawUnits(rt, "level", l.Limit), 1}
	switch branchOf(l) {
	case "sliding_window":
		b.aux = drawUnits(rt, "previous", l.Limit)
	case "first_hit": // it began at since or before, and was running then
		b.aux = since - rapid.OneOf(rapid.SampledFrom([]int64{0, 1, l.Window - 1}), rapid.Int64Range(0, l.Window-1)).Draw(rt, "began")
	}
	return b
}

// drawStored is that bucket as it is stored.
func drawStored(rt *rapid.T, l *Limit, since int64) []int64 {
	if l.Algorithm != SlidingLog {
		b := drawBucket(rt, l, since)
		return []int64{l.ID, b.level, b.aux}
	}
	stored := []int64{l.ID, 0, 0}
	count := rapid.SampledFrom([]int64{0, 1, 2, 5, 5, maxBlocks, maxBlocks + 3}).Draw(rt, "blocks")
	apart := max(1, rapid.SampledFrom([]int64{1, l.Precision, l.Window / (count + 1), l.Window / 3}).Draw(rt, "apart"))
	for n := count - 1; n >= 0; n-- {
		cost := 1 + drawUnits(rt, "units", l.Limit)
		if count > 5 {
			cost = 1
		}
		at := since - n*apart
		b, log := l.stand(stored, at, moment{at: at})
		stored = l.loggedAt(nil, b.level, log, at, cost)
	}
	return stored
}

// drawElapsed is the time since the last charge: around the ends of the limits' windows too.
func drawElapsed(rt *rapid.T, c *stepCase) int64 {
	elapsed := rapid.SampledFrom([]int64{0, 1, 999, 1e6, 3600e6, 1e15, -1, -2}).Draw(rt, "elapsed")
	if elapsed >= 0 {
		return elapsed
	}
	l := rapid.SampledFrom(c.limits).Draw(rt, "end of")
	end := l.Window
	if elapsed == -2 { // the end of the aligned one that runs at since, or of the next
		_, end = l.rules.encode(l, nil, c.target.moment(c.since))
		if end = min(end-c.since, 1e15); rapid.Bool().Draw(rt, "next") {
			end += l.Window
		}
	}
	return max(0, end+rapid.Int64Range(-1, 1).Draw(rt, "edge"))
}

func drawStep(rt *rapid.T) *stepCase {
	g := &traceGen{rt: rt}
	c := &stepCase{state: []int64{}, since: testEpoch + rapid.Int64Range(0, 1e12).Draw(rt, "since"), target: testTarget(1, 1, 1)}
	c.target.Periods = g.calendar().periods()
	var buckets [][]int64
	for _, tl := range g.limits(nil, 1) {
		l, _ := Compile(tl.spec())
		c.limits = append(c.limits, l)
		if g.chance("untouched", 6) {
			continue
		}
		buckets = append(buckets, drawStored(rt, l, c.since))
	}
	c.instant = c.since + drawElapsed(rt, c)
	c.target.Edited = c.since + rapid.SampledFrom([]int64{-c.since, -1, 0, 1, (c.instant - c.since) / 2, c.instant - c.since, 1e9}).Draw(rt, "edited")
	if g.chance("others' buckets", 3) {
		buckets = append(buckets, []int64{5, 5, 5}, []int64{-7, 1, 2, 3, 1})
	}
	if g.chance("moved", 3) && len(buckets) > 1 { // the first goes last
		buckets = append(buckets[1:], buckets[0])
	}
	for _, b := range buckets {
		c.state = append(c.state, b...)
	}
	sum := int64(0)
	for range rapid.IntRange(1, 8).Draw(rt, "hits") {
		sum += rapid.SampledFrom([]int64{1, 1, 2, 10, 1e6, max(1, c.limits[0].Limit/2), max(1, c.limits[0].Limit), MaxNumber}).Draw(rt, "cost")
		c.sums = append(c.sums, sum)
	}
	return c
}

// TestStepIsTheTwin: quotad_step_v2 alone and the rules agree on random states, those at
// the ends of 64 bits and those written by another limit's scale included, whether the hit
// is charged or not.
func TestStepIsTheTwin(t *testing.T) {
	conn, ctx := newTestDB(t).session(t), pgtest.Context(t)
	charged, refused := make(map[string]int), make(map[string]int)
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	for i := range rounds {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				c := drawStep(rt)
				if err := c.run(ctx, conn); err != nil {
					rt.Fatal(err)
				}
				for _, l := range c.limits {
					if c.want()[0] > 0 {
						charged[branchOf(l)]++
					} else {
						refused[branchOf(l)]++
					}
				}
			})
		})
	}
	t.Logf("charged %v, refused %v", charged, refused)
	if testing.Short() {
		return
	}
	for _, branch := range allBranches {
		if charged[branch] == 0 || refused[branch] == 0 {
			t.Errorf("no %s was charged, or none refused", branch)
		}
	}
}

var allBranches = []string{
	"fixed_window", "first_hit", "sliding_window", "sliding_log", "token_bucket", "allocation",
	"calendar_day", "calendar_week", "calendar_month", "calendar_year", "billing_period",
}

// TestStepSlides: the share of the last window is a whole number exactly, however large
// the product that it comes from.
func TestStepSlides(t *testing.T) {
	conn, ctx := newTestDB(t).session(t), pgtest.Context(t)
	for _, c := range []struct{ prev, window, elapsed int64 }{
		{MaxNumber, MaxWindow, 0},
		{MaxNumber, MaxWindow, 1},
		{MaxNumber, MaxWindow, MaxWindow - 1},
		{MaxNumber, MaxWindow, MaxWindow / 2},
		{MaxNumber, MaxWindow - 1, MaxWindow / 3},
		{MaxNumber - 1, 999_999_999_989, 7},
		{1, MaxWindow, MaxWindow - 1},
		{1, MaxWindow, 1},
		{3, 7, 4},
		{10, 1, 0},
	} {
		l := mustCompile(t, Spec{Name: "a", Algorithm: "sliding_window", Limit: MaxNumber, Window: fmt.Sprintf("%dus", c.window)})
		start := 10 * c.window
		sc := &stepCase{state: []int64{l.ID, 0, c.prev}, since: start, instant: start + c.elapsed, target: testTarget(1, 1, 1), limits: []*Limit{l}}
		exact := new(big.Int).Mul(big.NewInt(c.prev), big.NewInt(c.window-c.elapsed))
		room := MaxNumber - exact.Div(exact, big.NewInt(c.window)).Int64()
		sc.sums = []int64{max(1, room), max(1, room) + 1} // the first fits unless there is no room
		if err := sc.run(ctx, conn); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if got := l.rules.room(l, bucket{0, c.prev}, sc.moment()); got != room {
			t.Errorf("%+v: room for %d, exactly %d", c, got, room)
		}
	}
}

// TestStepRescales: a level in another scale is rounded up exactly, however large it is
// (numeric's own division rounds large quotients to the nearest).
func TestStepRescales(t *testing.T) {
	conn, ctx := newTestDB(t).session(t), pgtest.Context(t)
	for _, c := range []struct{ level, from, to int64 }{
		{9_000_000_000_000_000_001, 7, 5},
		{1, MaxWindow, 1},
		{1_000_000_000_001, 1e12, 1},
		{math.MaxInt64, 2, 1},
		{math.MaxInt64, 3, 1},
		{math.MaxInt64, 1, 2},
		{1e16 + 1, 1e12, 999_999_999_989},
		{5e15, 999_999_999_989, 1e12},
		{7, 7, 1},
	} {
		l := &Limit{ID: 1, Algorithm: TokenBucket, rules: tokenBucket{}, Limit: 0, Burst: 1, Window: c.to, scale: c.to, capacity: c.to}
		sc := &stepCase{state: []int64{1, c.level, c.from}, since: 5, instant: 5, target: testTarget(1, 1, 1), limits: []*Limit{l}, sums: []int64{1}}
		if err := sc.run(ctx, conn); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		exact := new(big.Int).Mul(big.NewInt(c.level), big.NewInt(c.to))
		exact.Add(exact, big.NewInt(c.from-1)).Div(exact, big.NewInt(c.from))
		want := int64(math.MaxInt64)
		if exact.IsInt64() {
			want = exact.Int64()
		}
		if got := rescale(c.level, c.to, c.from); got != want {
			t.Errorf("%+v: rescaled to %d, exactly %s", c, got, exact)
		}
	}
}

// TestStepSoftEnds: where a soft limit's level stops, neither sum of levels leaves 64 bits.
func TestStepSoftEnds(t *testing.T) {
	conn, ctx := newTestDB(t).session(t), pgtest.Context(t)
	start := testEpoch - testEpoch%60e6
	for name, s := range map[string]struct {
		spec  Spec
		state func(*Limit) []int64
	}{
		"sliding_window": {Spec{Algorithm: "sliding_window", Window: "1m"}, func(l *Limit) []int64 { return []int64{l.ID, softCap, softCap} }},
		"fixed_window":   {Spec{Algorithm: "fixed_window", Window: "1m"}, func(l *Limit) []int64 { return []int64{l.ID, softCap - 1, 1} }},
		"token_bucket":   {Spec{Algorithm: "token_bucket", Window: "3660d"}, func(l *Limit) []int64 { return []int64{l.ID, math.MaxInt64 - 1, l.scale} }},
		"sliding_log": {Spec{Algorithm: "sliding_log", Window: "1m"}, func(l *Limit) []int64 {
			return l.loggedAt(nil, 0, nil, start, l.logUnits()-2)
		}},
	} {
		s.spec.Name, s.spec.Limit, s.spec.Mode = "a", 7, "soft"
		l := mustCompile(t, s.spec)
		for _, sums := range [][]int64{{1}, {1, 2, 3}, {MaxNumber, MaxNumber + 1}} {
			sc := &stepCase{state: s.state(l), since: start, instant: start, target: testTarget(1, 1, 1), limits: []*Limit{l}, sums: sums}
			if err := sc.run(ctx, conn); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			d := judge(testTarget(1, 1, 1, l), []row{{state: sc.want()[2:], at: start}}, start, 1)
			if v := d.View(0); v.Used < 7 || v.Remaining != 0 || !v.Exceeded || !d.Allowed {
				t.Errorf("%s: view %+v", name, v)
			}
		}
	}
}
