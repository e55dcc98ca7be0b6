package model

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

const testHour = int64(3600e6)

// usual is a limit of 10 units of an algorithm. Where the algorithm takes a burst, 20 are there at first.
func (d *descriptor) usual() Spec {
	s := Spec{Name: "x", Algorithm: d.name, Limit: 10}
	if d.window != noWindow {
		s.Window = "1h"
	}
	if slices.Contains(d.takes, "burst") {
		s.Burst = ptr(int64(20))
	}
	if slices.Contains(d.takes, "ttl") {
		s.TTL = "10m"
	}
	return s
}

// usualLimits are limits of all algorithms. A window that begins with a first hit is one more.
func usualLimits(t *testing.T) (limits []*Limit) {
	for _, d := range algorithms {
		limits = append(limits, mustCompile(t, d.usual()))
		if slices.Contains(d.takes, "align") {
			s := d.usual()
			s.Align = "first_hit"
			limits = append(limits, mustCompile(t, s))
		}
	}
	return limits
}

// A counted limit is a limit and its bucket, as a counter's row has it.
type countedLimit struct {
	*Limit
	state []int64
	since int64
}

func (c *countedLimit) stands(at int64) (bucket, moment) {
	m := moment{at: at}
	b, log := c.stand(c.state, c.since, m)
	m.log = log
	return b, m
}

func (c *countedLimit) left(at int64) int64 {
	b, m := c.stands(at)
	return c.rules.headroom(c.Limit, b, m)
}

func (c *countedLimit) charge(at, cost int64) {
	c.state, _ = chargeState(nil, []*Limit{c.Limit}, c.state, c.since, cost, moment{at: at})
	c.since = at
}

// TestEachAlgorithmIsDescribed: a descriptor leaves nothing out.
func TestEachAlgorithmIsDescribed(t *testing.T) {
	for _, d := range algorithms {
		if d.number == 0 || d.number.is() != d || named(d.name) != d || d.number.String() != d.name || AlgorithmNamed(d.name) != d.number {
			t.Errorf("%s is not found by its number %d, or by its name", d.name, d.number)
		}
		if d.kept == 0 || d.window == 0 || d.hours == 0 || d.compile == nil {
			t.Errorf("%s does not say where it counts, what its window is, what hours say of it, or what its rules are", d.name)
		}
		if d.window == noWindow && (d.hours != nothingByHour || d.compared) {
			t.Errorf("%s has no window, and is played by hours or in the playground", d.name)
		}
	}
}

// TestFieldsOfAlgorithms: a field of a limit belongs to all algorithms or is refused of those that
// do not take it, and what takes it has a default or demands it.
func TestFieldsOfAlgorithms(t *testing.T) {
	ofAll := []string{"name", "algorithm", "limit", "window", "per", "mode", "on_outage", "notify"}
	for f := range reflect.TypeFor[Spec]().Fields() {
		field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		takers := TakenBy(field)
		if (takers == nil) != slices.Contains(ofAll, field) {
			t.Errorf("%s belongs to %q", field, takers)
		}
		if takers == nil {
			continue
		}
		var given any = "1s"
		if f.Type.Kind() == reflect.Pointer {
			given = ptr(int64(5))
		}
		refused := func(s Spec) bool {
			_, bad := Compile(s)
			return slices.ContainsFunc(bad, func(e FieldError) bool { return e.Field == field })
		}
		for _, d := range algorithms {
			s := d.usual()
			at := reflect.ValueOf(&s).Elem().FieldByIndex(f.Index)
			if !slices.Contains(takers, d.name) {
				if at.Set(reflect.ValueOf(given)); !refused(s) {
					t.Errorf("%s takes %s", d.name, field)
				}
				continue
			}
			at.SetZero()
			if demanded := refused(s); demanded {
				continue
			}
			l := mustCompile(t, s)
			s = WithDefaults(s)
			if filled := mustCompile(t, s); at.IsZero() || filled.ID != l.ID || filled.Capacity() != l.Capacity() {
				t.Errorf("%s without %s is another limit than %+v", d.name, field, s)
			}
		}
	}
}

// TestFactsOfAlgorithms: what a descriptor says is what the rules do.
func TestFactsOfAlgorithms(t *testing.T) {
	begin := testEpoch - testEpoch%testHour
	end := begin + testHour - 1
	for _, l := range usualLimits(t) {
		fresh := countedLimit{Limit: l}
		if fresh.left(begin) != l.Capacity() {
			t.Errorf("%s admits %d at first, not %d", l.Algorithm, fresh.left(begin), l.Capacity())
		}
		if l.kept == inHolds {
			continue
		}
		var full countedLimit
		for _, at := range []int64{begin, end} {
			full = fresh
			full.charge(at, l.Capacity())
			b, m := full.stands(at)
			if never := l.wait(b, 1, m) == Never && l.rules.resetAt(l, b, m) == NoReset; never != l.stays {
				t.Errorf("units of %s come back never: %v", l.Algorithm, never)
			}
			if !l.stays && full.left(at+l.Lifetime()+l.Precision) != l.Capacity() {
				t.Errorf("%s counts a hit for longer than %d µs", l.Algorithm, l.Lifetime())
			}
		}
		b, _ := full.stands(end + 1)
		if l.twoWindows != (b.level == 0 && b.aux == l.Limit) {
			t.Errorf("%s keeps the window before in aux, or not: %+v", l.Algorithm, b)
		}
		if played, whole := l.ByHour(); whole && full.left(end+1) != l.Capacity() || !played && l.Window > 0 {
			t.Errorf("%s says the hour's units wrong: %d are left after it", l.Algorithm, full.left(end+1))
		}
	}
}

// TestLifetimesOfAlgorithms: however hits came one after the other, the last one counts for its limit's lifetime
// at most, and some hit counts for half of it or longer.
func TestLifetimesOfAlgorithms(t *testing.T) {
	begin := testEpoch - testEpoch%testHour
	for _, l := range usualLimits(t) {
		if l.kept == inHolds || l.stays {
			continue
		}
		long := false
		for _, gap := range []int64{1, 7 * 60e6, 31 * 60e6, testHour - 1, testHour, 2*testHour - 1} {
			c, at := countedLimit{Limit: l}, begin
			for n := range int64(40) {
				at += gap
				if cost := min(1+n%3, c.left(at)); cost > 0 {
					c.charge(at, cost)
				}
				over := c.since + l.Lifetime() + l.Precision
				if left := c.left(over); left != l.Capacity() {
					t.Fatalf("%s: after %d hits, %d µs apart, %d of %d are there a lifetime later", l.Algorithm, n+1, gap, left, l.Capacity())
				}
				long = long || c.left(c.since+l.Lifetime()/2) < l.Capacity()
			}
		}
		if !long {
			t.Errorf("%s: no hit counts for half of its lifetime, %d µs", l.Algorithm, l.Lifetime())
		}
	}
}

// TestMostInATime: no limit admits more in an hour than it says, whatever came before.
func TestMostInATime(t *testing.T) {
	for _, d := range algorithms {
		if d.hours == nothingByHour {
			continue
		}
		for _, window := range []string{"7m", "30m", "1h", "90m", "2h"} {
			for _, align := range []string{"", "first_hit"} {
				s := d.usual()
				if s.Window = window; slices.Contains(d.takes, "align") {
					s.Align = align
				}
				l := mustCompile(t, s)
				start := testEpoch - testEpoch%(6*testHour)
				most := l.MostIn(testHour, testHour%l.Window == 0)
				for _, before := range []int64{0, 1, l.Window / 2, l.Window} { // a hit so long before the hour
					c, sum := countedLimit{Limit: l}, int64(0)
					if before > 0 {
						c.charge(start-before, 1)
					}
					for at := start; at < start+testHour; at += 60e6 {
						if cost := c.left(at); cost > 0 {
							c.charge(at, cost)
							sum += cost
						}
					}
					if sum > most {
						t.Errorf("%s admits %d in an hour, more than %d, after a hit %d before", window+" "+d.name+" "+align, sum, most, before)
					}
				}
			}
		}
	}
}

// TestMulDivUp: a quotient is rounded up, and stops where 64 bits do.
func TestMulDivUp(t *testing.T) {
	for _, c := range [][4]int64{{7, 3, 2, 11}, {1 << 62, 4, 1, 1<<63 - 1}, {1 << 62, 1 << 62, 1 << 62, 1 << 62}, {0, 5, 3, 0}} {
		if got := mulDivUp(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%d·%d/%d is %d", c[0], c[1], c[2], got)
		}
	}
}
