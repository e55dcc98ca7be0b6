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

// stepCase is one call of quotad_step_v1.
type stepCase struct {
	state          []int64
	since, instant int64
	limits         []*Limit
	sums           []int64
}

// want is what the Go twin makes of it.
func (c *stepCase) want() []int64 {
	room, out := MaxNumber*2, []int64{0}
	for _, l := range c.limits {
		level := l.level(c.state, c.since, c.instant)
		room = min(room, l.room(level))
		out = append(out, l.ID, level, l.weight())
	}
	for _, s := range c.sums {
		if s <= room {
			out[0]++
		}
	}
	if out[0] > 0 {
		for i := 2; i < len(out); i += bucketLen {
			out[i] += c.sums[out[0]-1] * out[i+1]
		}
	}
	return out
}

func (c *stepCase) run(ctx context.Context, conn *pgx.Conn) error {
	limits, _ := encodeLimits(nil, c.limits, c.instant)
	var got []int64
	err := conn.QueryRow(ctx, "SELECT quotad_step_v1($1, $2, $3, $4, $5)", c.state, c.since, c.instant, limits, c.sums).Scan(&got)
	if err != nil {
		return err
	}
	if want := c.want(); !slices.Equal(got, want) {
		return fmt.Errorf("state %v of %d at %d, limits %v, sums %v: %v, the model says %v", c.state, c.since, c.instant, limits, c.sums, got, want)
	}
	return nil
}

// drawLevel is a level a bucket can have: up to all that 64 bits hold after an edit.
func drawLevel(rt *rapid.T, l *Limit) int64 {
	switch rapid.SampledFrom([]string{"zero", "few", "whole", "any"}).Draw(rt, "level") {
	case "few":
		return rapid.Int64Range(1, 100).Draw(rt, "few")
	case "whole":
		whole := l.Limit
		if l.Algorithm == TokenBucket {
			whole = l.capacity
		}
		return max(0, min(whole, math.MaxInt64-1)-rapid.Int64Range(-1, 1).Draw(rt, "less"))
	case "any":
		if l.Algorithm == FixedWindow {
			return rapid.Int64Range(0, MaxNumber).Draw(rt, "units")
		}
		return rapid.Int64Range(0, math.MaxInt64).Draw(rt, "parts")
	}
	return 0
}

func drawStep(rt *rapid.T) *stepCase {
	c := &stepCase{state: []int64{}, since: testEpoch + rapid.Int64Range(0, 1e12).Draw(rt, "since")}
	c.instant = c.since + rapid.SampledFrom([]int64{0, 1, 999, 1e6, 3600e6, 1e15}).Draw(rt, "elapsed")
	g := &traceGen{rt: rt}
	for _, tl := range g.limits(nil, 1) {
		l, _ := Compile(tl.spec())
		c.limits = append(c.limits, l)
		if g.chance("untouched", 6) {
			continue
		}
		scale := l.weight()
		if l.Algorithm == TokenBucket && g.chance("other scale", 2) {
			scale = rapid.SampledFrom([]int64{1, 3, 7, 1e6, 999_999_999_989, l.Window, MaxWindow}).Draw(rt, "scale")
		}
		c.state = append(c.state, l.ID, drawLevel(rt, l), scale)
	}
	if g.chance("others' buckets", 3) {
		c.state = append(c.state, 5, 5, 5)
	}
	if g.chance("moved", 3) {
		for i := bucketLen; i < len(c.state); i++ { // the first bucket goes last
			c.state[i-bucketLen], c.state[i] = c.state[i], c.state[i-bucketLen]
		}
	}
	sum := int64(0)
	for range rapid.IntRange(1, 8).Draw(rt, "hits") {
		sum += rapid.SampledFrom([]int64{1, 1, 2, 10, 1e6, max(1, c.limits[0].Limit/2), max(1, c.limits[0].Limit), MaxNumber}).Draw(rt, "cost")
		c.sums = append(c.sums, sum)
	}
	return c
}

// TestStepIsTheTwin: quotad_step_v1 alone and level.go agree on random states, those at
// the ends of 64 bits and those written by another limit's scale included.
func TestStepIsTheTwin(t *testing.T) {
	conn, ctx := newTestDB(t).session(t), pgtest.Context(t)
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	for i := range rounds {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				if err := drawStep(rt).run(ctx, conn); err != nil {
					rt.Fatal(err)
				}
			})
		})
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
		sc := &stepCase{state: []int64{1, c.level, c.from}, since: 5, instant: 5, limits: []*Limit{l}, sums: []int64{1}}
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
