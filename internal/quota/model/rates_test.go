package model

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"quotad/internal/testkit"
)

// TestRates: what the contract says of edits, one after the other.
func TestRates(t *testing.T) {
	rates := Rates(nil).Then(100, 6)
	if !slices.Equal(rates, Rates{{Always, 6}}) {
		t.Errorf("the first: %v", rates)
	}
	rates = rates.Then(200, 60).Then(300, 60).Then(400, 6)
	if want := (Rates{{Always, 6}, {200, 60}, {400, 6}}); !slices.Equal(rates, want) {
		t.Errorf("%v, want %v", rates, want)
	}
	back := rates.Then(150, 7)
	if want := (Rates{{Always, 6}, {150, 7}}); !slices.Equal(back, want) {
		t.Errorf("the clock was set back: %v, want %v", back, want)
	}
	if len(rates) != 3 || rates.At(199) != 6 || rates.At(200) != 60 || rates.At(399) != 60 || rates.At(math.MaxInt64) != 6 {
		t.Errorf("%v have changed, or are read wrongly", rates)
	}
	many := Rates(nil).Then(0, 50)
	for i := range int64(20) {
		many = many.Then(i+1, 100-i).Latest()
	}
	if len(many) != mostEdits+1 || many[0] != (Rate{Always, 50}) || many[1].From != 13 {
		t.Errorf("the slowest of the forgotten ones counts before the last %d: %v", mostEdits, many)
	}
}

// TestConversionIsExact: what is left of a level is that of exact fractions, rounded up once.
func TestConversionIsExact(t *testing.T) {
	seed := testkit.Seed(t)
	draw := rand.New(rand.NewPCG(seed, 1))
	numbers := []int64{0, 1, 3, 7, 60, 3600, 999_983, 1e9, 999_999_999_989, MaxNumber}
	windows := []int64{1, 7, 1e6, 60e6, 3600e6, 999_999_999_989, MaxWindow}
	number := func() int64 { return numbers[draw.IntN(len(numbers))] }
	for range 20_000 {
		window, since := windows[draw.IntN(len(windows))], draw.Int64N(1e15)
		at, was := since+draw.Int64N(1<<(1+draw.IntN(61))), number()
		rates := Rates(nil).Then(0, was)
		for range draw.IntN(12) {
			rates = rates.Then(since+draw.Int64N(at-since+1)-at/10+draw.Int64N(at/5+1), number()).Latest()
		}
		l := (&Limit{Algorithm: TokenBucket, Window: window, Limit: rates[len(rates)-1].Limit}).WithRates(rates)
		stored := bucket{draw.Int64N(1 << (1 + draw.IntN(62))), ratedBy(was)}
		exact := big.NewRat(stored.level, window/common(was, window))
		for i, r := range rates {
			from, to := max(r.From, since), at
			if i+1 < len(rates) {
				to = min(to, rates[i+1].From)
			}
			if from < to {
				back := new(big.Rat).Mul(big.NewRat(r.Limit, window), big.NewRat(to-from, 1))
				exact.Sub(exact, back)
			}
		}
		exact.Mul(exact, big.NewRat(window/common(l.Limit, window), 1))
		want := new(big.Int).Add(exact.Num(), new(big.Int).Sub(exact.Denom(), big.NewInt(1)))
		want.Div(want, exact.Denom())
		switch {
		case want.Sign() < 0:
			want.SetInt64(0)
		case !want.IsInt64():
			want.SetInt64(math.MaxInt64)
		}
		if got := l.convert(stored, since, at, ratedBy(l.Limit)); got != want.Int64() {
			t.Fatalf("seed %v: %+v of %v in %d from %d to %d: %d parts, want %s", seed, stored, rates, window, since, at, got, want)
		}
	}
}

// TestLoweredAndPutBack: a rate that is put back counts from its own edit on, not from the charge.
func TestLoweredAndPutBack(t *testing.T) {
	second := int64(1e6)
	rates := Rates{{Always, 60}, {testEpoch + second, 1}, {testEpoch + 90*second, 60}}
	limit := bucketLimit(t, "a", 60, "1m", 100)
	_, rows := decideOn(testTarget(1, 1, 1, limit), []Row{{}}, testEpoch, 100)
	d := Judge(testTarget(1, 1, 2, limit.WithRates(rates)), rows, testEpoch+90*second, 0)
	if left := d.View(0).Remaining; left != 2 {
		t.Errorf("%d are left, want the one of the first second and one of 89 seconds at 1 a minute", left)
	}
}

// TestWaitsEndWithTheOverride: whatever the algorithm, no wait is longer than an override.
func TestWaitsEndWithTheOverride(t *testing.T) {
	second := int64(1e6)
	for name, spec := range map[string]Spec{
		"closed":         {Algorithm: "fixed_window", Limit: 0, Window: "1h"},
		"fixed window":   {Algorithm: "fixed_window", Limit: 5, Window: "1h"},
		"first hit":      {Algorithm: "fixed_window", Limit: 5, Window: "1h", Align: "first_hit"},
		"month":          {Algorithm: "fixed_window", Limit: 5, Window: "calendar_month"},
		"sliding window": {Algorithm: "sliding_window", Limit: 5, Window: "1h"},
		"sliding log":    {Algorithm: "sliding_log", Limit: 5, Window: "1h"},
		"token bucket":   {Algorithm: "token_bucket", Limit: 5, Window: "1h"},
		"allocation":     {Algorithm: "allocation", Limit: 5},
	} {
		spec.Name = "a"
		limit := mustCompile(t, spec)
		target := testTarget(1, 1, 1, limit.Ending(testEpoch+60*second))
		rows := []Row{{}}
		if limit.Limit > 0 {
			_, rows = decideOn(testTarget(1, 1, 1, limit), rows, testEpoch, limit.Limit)
		}
		for _, cost := range []int64{1, 6} {
			d := Judge(target, rows, testEpoch+10*second, cost)
			if w := d.RetryAfter(); w != 50*second || d.View(0).RetryAfter != w {
				t.Errorf("%s: a cost of %d waits for %d, %d, want 50 s", name, cost, w, d.View(0).RetryAfter)
			}
			if d = Judge(testTarget(1, 1, 1, limit), rows, testEpoch+10*second, cost); d.RetryAfter() == 50*second {
				t.Errorf("%s: it waits no longer without an end", name)
			}
		}
	}
	soon := mustCompile(t, Spec{Name: "a", Algorithm: "token_bucket", Limit: 5, Window: "5s"})
	_, rows := decideOn(testTarget(1, 1, 1, soon), []Row{{}}, testEpoch, 5)
	if d := Judge(testTarget(1, 1, 1, soon.Ending(testEpoch+60*second)), rows, testEpoch, 1); d.RetryAfter() != second {
		t.Errorf("a shorter wait stays: %d", d.RetryAfter())
	}
}

// TestBackdatedAtTheRatesOfThen: an imported charge leaves what the charge itself would have left.
func TestBackdatedAtTheRatesOfThen(t *testing.T) {
	hour := int64(3600e6)
	now := testEpoch + 2*hour
	limit := bucketLimit(t, "a", 1000, "1h", 1000).WithRates(Rates{{Always, 10}, {now - 60e6, 1000}})
	target := testTarget(1, 1, 1, limit)
	_, charged := decideOn(testTarget(1, 1, 1, bucketLimit(t, "a", 10, "1h", 1000)), []Row{{}}, testEpoch, 1000)
	want := Judge(target, charged, now, 0)
	imported := Row{At: now}
	target.Backdate(0, &imported, testEpoch, 1000)
	got := Judge(target, []Row{imported}, now, 0)
	if got.View(0).Used != want.View(0).Used || want.View(0).Used < 900 {
		t.Errorf("%d are used after an import, %d after the charge", got.View(0).Used, want.View(0).Used)
	}
}

// TestWhatWasUsedOutlastsALowerLimit: a limit whose parts are so small that 64 bits do not hold what is
// missing keeps it nevertheless, through charges and returns, for when the limit is put back.
func TestWhatWasUsedOutlastsALowerLimit(t *testing.T) {
	const day, billion = int64(24 * 3600e6), int64(1e9)
	const used = billion / 2
	for _, lowered := range []int64{0, 1, 7} {
		burst := int64(0)
		plan := bucketLimit(t, "a", 1000, "720h", billion)
		_, rows := decideOn(testTarget(1, 1, 1, plan), []Row{{}}, testEpoch, used)
		rates := Rates{{Always, 1000}, {testEpoch + 30*day, lowered}}
		low := mustCompile(t, Spec{Name: "a", Algorithm: "token_bucket", Limit: lowered, Window: "720h", Burst: &burst, Mode: "soft"}).WithRates(rates)
		target := testTarget(1, 1, 2, low)
		target.Charge(rows, 5000, testEpoch+60*day, nil)
		target.GiveBack("", &rows[0], []int64{low.ID}, Present, 2000)
		target.Backdate(0, &rows[0], testEpoch+30*day, 500)
		if err := target.Check("", &rows[0]); err != nil {
			t.Fatal(err)
		}
		d := Judge(target, rows, testEpoch+60*day, 1)
		if v := d.View(0); v.Used != 0 || v.Remaining != 0 || !v.Exceeded {
			t.Errorf("limit %d: %+v", lowered, v)
		}
		back := plan.WithRates(append(rates, Rate{testEpoch + 90*day, 1000}))
		d = Judge(testTarget(1, 1, 3, back), rows, testEpoch+90*day, 0)
		// 1000 came back in the first month. In each later month it was the lower limit, and in the
		// second as much once more, of what was imported as of the month's beginning.
		if want := used - 1000 + 5000 - 2000 + 500 - 3*lowered; d.View(0).Used != want {
			t.Errorf("limit %d: %d used when it is put back, want %d", lowered, d.View(0).Used, want)
		}
	}
}

// TestEditsRoundByAMicrosecond edits the rate of a bucket at odd instants, between hits and refunds, and
// compares the bucket with exact fractions. Each edit may round the used units up by what a microsecond
// refills at the rate then in force, and never down.
func TestEditsRoundByAMicrosecond(t *testing.T) {
	const window = int64(7 * 3600e6)
	draw := rand.New(rand.NewPCG(testkit.Seed(t), 5))
	limitOf := func(units int64) *Limit { return bucketLimit(t, "a", units, "7h", 1000) }
	for run := range 300 {
		rates, rows := Rates(nil).Then(0, 7), []Row{{}}
		at, last := testEpoch, testEpoch
		used, rounded := new(big.Rat), new(big.Rat) // exactly, and how much more the bucket may say
		perMicrosecond := big.NewRat(7, window)
		for step := range 12 {
			if step > 0 && draw.IntN(2) == 0 {
				at += 1 + draw.Int64N(3600e6)
				rates = rates.Then(at, []int64{7, 30, 1}[draw.IntN(3)]).Latest()
			}
			limit := limitOf(rates[len(rates)-1].Limit).WithRates(rates)
			at += draw.Int64N(1800e6)
			for i, r := range rates { // what came back since the last charge
				from, to := max(r.From, last), at
				if i+1 < len(rates) {
					to = min(to, rates[i+1].From)
				}
				if from < to {
					used.Sub(used, new(big.Rat).Mul(big.NewRat(r.Limit, window), big.NewRat(to-from, 1)))
				}
			}
			if used.Sign() < 0 {
				used.SetInt64(0)
			}
			if next := big.NewRat(limit.Limit, window); next.Cmp(perMicrosecond) != 0 {
				perMicrosecond = next
				rounded.Add(rounded, next)
			}
			target, units := testTarget(1, 1, 1, limit), 1+draw.Int64N(20)
			d, after := decideOn(target, rows, at, units)
			if !d.Allowed {
				t.Fatalf("run %d: %d units are refused: %s", run, units, d.String())
			}
			rows, last = after, at
			used.Add(used, big.NewRat(units, 1))
			if draw.IntN(3) == 0 {
				target.GiveBack("", &rows[0], []int64{limit.ID}, Present, 1)
				used.Sub(used, big.NewRat(1, 1))
			}
			stored := bucket{rows[0].State[1], rows[0].State[2]}
			says := big.NewRat(stored.level, limit.partsOf(stored))
			if more := new(big.Rat).Sub(says, used); more.Sign() < 0 || more.Cmp(rounded) > 0 {
				t.Fatalf("run %d, step %d: the bucket says %s used, %s more than the exact %s; edits may round by %s", run, step,
					says.FloatString(12), more.FloatString(12), used.FloatString(12), rounded.FloatString(12))
			}
		}
	}
}
