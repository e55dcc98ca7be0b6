package play

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

var monthly = calendar.Interval{Unit: calendar.Months, Count: 1}

func compile(t testing.TB, specs ...model.Spec) (limits []*model.Limit) {
	t.Helper()
	for _, s := range specs {
		l, bad := model.Compile(s)
		if bad != nil {
			t.Fatal(bad)
		}
		limits = append(limits, l)
	}
	return limits
}

func played(t testing.TB, limits []*model.Limit, traffic Traffic) *Result {
	t.Helper()
	if bad := traffic.Check(); len(bad) > 0 {
		t.Fatal(bad)
	}
	hits, err := traffic.Hits()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Play(context.Background(), limits, Periods(monthly), hits, traffic.Length())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The vectors of limits, which an independent model made: the player admits the same hits, and
// says the same waits.
func TestPlayerAgreesWithVectors(t *testing.T) {
	files, err := filepath.Glob("../testdata/vectors/limits/*.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d vectors (%v)", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) { playVector(t, path) })
	}
}

type vector struct {
	Limits []struct {
		Name      string `json:"name"`
		Algorithm string `json:"algorithm"`
		Limit     int64  `json:"limit"`
		Window    int64  `json:"window_us"`
		Burst     *int64 `json:"burst"`
		Align     string `json:"align"`
		Precision int64  `json:"precision_us"`
	} `json:"limits"`
	Hits []struct {
		At      int64 `json:"at_us"`
		Cost    int64 `json:"cost"`
		Allowed bool  `json:"allowed"`
		Limits  []struct {
			Wait *int64 `json:"retry_after_us"`
		} `json:"limits"`
	} `json:"hits"`
}

func playVector(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var v vector
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	var specs []model.Spec
	for _, l := range v.Limits {
		s := model.Spec{Name: l.Name, Algorithm: l.Algorithm, Limit: l.Limit, Window: fmt.Sprintf("%dus", l.Window), Burst: l.Burst, Align: l.Align}
		if l.Precision > 0 {
			s.Precision = fmt.Sprintf("%dus", l.Precision)
		}
		specs = append(specs, s)
	}
	p := newPlayer(compile(t, specs...), Periods(monthly), 0, model.MaxWindow)
	for i, h := range v.Hits {
		if h.Cost == 0 { // a look, which no play has
			continue
		}
		p.hit(Hit{h.At, h.Cost})
		wait := int64(0)
		for _, l := range h.Limits {
			switch {
			case l.Wait == nil:
				wait = model.Never
			case wait != model.Never:
				wait = max(wait, *l.Wait)
			}
		}
		got := p.result.Hits[len(p.result.Hits)-1]
		if got.Admitted != h.Allowed || got.Wait != wait {
			t.Fatalf("hit %d at %d, cost %d: admitted %v, wait %d; want %v, %d", i, h.At, h.Cost, got.Admitted, got.Wait, h.Allowed, wait)
		}
	}
}

// What each algorithm promises of its windows, over random limits and hits.
func TestNoWindowHoldsMoreThanPromised(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 8))
	for round := range 300 {
		limit, window := 1+random.Int64N(40), int64(1e6)*(1+random.Int64N(60))
		burst := 1 + random.Int64N(80)
		for i, spec := range Variants(limit, window, &burst) {
			l := compile(t, spec)[0]
			hits := randomHits(random, 400, 6*window, limit)
			r, err := Play(context.Background(), []*model.Limit{l}, Periods(monthly), hits, 6*window)
			if err != nil {
				t.Fatal(err)
			}
			most := []int64{2 * limit, 2 * limit, limit, limit + burst}[i]
			if got := r.Limits[0].Fullest.Units; got > most {
				t.Errorf("round %d, %s, %d a %d µs: %d in the fullest window, at most %d", round, spec.Algorithm, limit, window, got, most)
			}
			if i == 0 && perClockWindow(r, window) > limit {
				t.Errorf("round %d: a clock's window has more than %d", round, limit)
			}
			if spec.Algorithm != "token_bucket" && slices.Max(r.Limits[0].Level) > limit {
				t.Errorf("round %d, %s: a level above %d", round, spec.Algorithm, limit)
			}
			if r.Admitted.Hits+r.Refused.Hits != int64(len(hits)) || len(r.Hits) != len(hits) || len(r.Limits[0].Level) != Samples {
				t.Errorf("round %d, %s: %+v and %+v of %d hits, %d samples", round, spec.Algorithm, r.Admitted, r.Refused, len(hits), len(r.Limits[0].Level))
			}
			if r.Refused.Hits != r.Limits[0].Refused || (r.Refusal != nil) != (r.Refused.Hits > 0) {
				t.Errorf("round %d, %s: %d refused, the limit says %d", round, spec.Algorithm, r.Refused.Hits, r.Limits[0].Refused)
			}
		}
	}
}

func randomHits(random *rand.Rand, n int, length, most int64) []Hit {
	hits := make([]Hit, n)
	for i := range hits {
		hits[i] = Hit{At: random.Int64N(length), Cost: 1 + random.Int64N(max(1, most/4))}
	}
	slices.SortFunc(hits, func(a, b Hit) int { return int(a.At - b.At) })
	return hits
}

// perClockWindow is the most units in one window of the clock. Plays start at its edge.
func perClockWindow(r *Result, window int64) (most int64) {
	sums := make(map[int64]int64)
	for _, h := range r.Hits {
		if h.Admitted {
			sums[h.At/window] += h.Cost
		}
	}
	for _, n := range sums {
		most = max(most, n)
	}
	return most
}

// The fullest window, against a recount of all windows that end with a hit.
func TestFullestIsTheRecount(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		length := 1 + random.Int64N(50)
		hits := make([]Outcome, random.IntN(40))
		at := int64(0)
		for i := range hits {
			at += random.Int64N(20)
			hits[i] = Outcome{Hit: Hit{at, 1 + random.Int64N(5)}, Admitted: random.IntN(3) > 0}
		}
		var want Window
		for _, last := range hits {
			w := Window{From: -1}
			for _, h := range hits {
				if h.Admitted && h.At <= last.At && h.At > last.At-length {
					if w.From < 0 {
						w.From = h.At
					}
					w.Units += h.Cost
				}
			}
			if last.Admitted && w.Units > want.Units {
				want = w
			}
		}
		if got := fullest(hits, length); got != want {
			t.Fatalf("%+v, want %+v of %v in windows of %d", got, want, hits, length)
		}
	}
}

// A refused hit is admitted after its wait, and not a microsecond before.
func TestWaitsAreExact(t *testing.T) {
	burst := int64(12)
	for _, spec := range Variants(10, 60e6, &burst) {
		limits := compile(t, spec)
		r := played(t, limits, Traffic{Pattern: Edge, Window: 60e6, Windows: 4, Steady: 8, Burst: 15, Cost: 1})
		checked := 0
		for i, o := range r.Hits {
			if o.Admitted || i%5 > 0 {
				continue
			}
			checked++
			var before []Hit
			for _, earlier := range r.Hits[:i] {
				before = append(before, earlier.Hit)
			}
			for early, want := range map[int64]bool{0: true, 1: false} {
				again, err := Play(context.Background(), limits, Periods(monthly), append(slices.Clone(before), Hit{o.At + o.Wait - early, o.Cost}), 600e6)
				if err != nil {
					t.Fatal(err)
				}
				if got := again.Hits[i].Admitted; got != want {
					t.Errorf("%s: refused at %d with a wait of %d; %d µs before its end admitted is %v", spec.Algorithm, o.At, o.Wait, early, got)
				}
			}
		}
		if checked == 0 {
			t.Errorf("%s: nothing was refused", spec.Algorithm)
		}
	}
}

// A burst on each side of a window's edge: the fixed window lets both through, the log does not.
func TestEdgeTellsAlgorithmsApart(t *testing.T) {
	traffic := Traffic{Pattern: Edge, Window: 60e6, Windows: 4, Steady: 24, Burst: 88, Cost: 1}
	var most []int64
	for _, spec := range Variants(100, 60e6, nil) {
		most = append(most, played(t, compile(t, spec), traffic).Limits[0].Fullest.Units)
	}
	if most[0] < 180 || most[2] != 100 || most[1] >= most[0] || most[1] <= most[2] {
		t.Errorf("in the fullest minute %v by %v", most, Algorithms)
	}
}

// Limits of a plan are charged all or none, as hits charge them.
func TestSeveralLimitsAreChargedTogether(t *testing.T) {
	limits := compile(t,
		model.Spec{Name: "minute", Algorithm: "fixed_window", Limit: 10, Window: "1m"},
		model.Spec{Name: "play", Algorithm: "fixed_window", Limit: 25, Window: "1h"},
		model.Spec{Name: "watch", Algorithm: "fixed_window", Limit: 5, Window: "1m", Mode: "shadow"},
		model.Spec{Name: "open", Algorithm: "concurrency", Limit: 1, TTL: "1m"})
	r := played(t, limits, Traffic{Pattern: Steady, Window: 60e6, Windows: 4, Steady: 20, Cost: 1})
	if r.Admitted.Hits != 25 || r.Refused.Hits != 55 {
		t.Errorf("%d admitted, %d refused", r.Admitted.Hits, r.Refused.Hits)
	}
	if len(r.Limits) != 3 || r.Limits[0].Fullest.Units != 10 || r.Limits[2].Refused == 0 {
		t.Errorf("%+v", r.Limits)
	}
}

func TestTrafficHasBounds(t *testing.T) {
	most := Traffic{Pattern: Steady, Window: 1e6, Windows: 10, Steady: 1000, Cost: 1}
	if hits, err := most.Hits(); err != nil || len(hits) != MaxHits {
		t.Errorf("%d hits, %v", len(hits), err)
	}
	for _, over := range []Traffic{
		{Pattern: Steady, Window: 1e6, Windows: 11, Steady: 1000, Cost: 1},
		{Pattern: Bursts, Window: 1e6, Windows: MaxWindows, Steady: MaxHits, Burst: MaxHits, Cost: 1},
		{Pattern: Edge, Window: 1, Windows: MaxWindows, Steady: 1, Burst: MaxHits, Cost: 1},
	} {
		if bad := over.Check(); len(bad) > 0 {
			t.Error(bad)
		}
		if hits, err := over.Hits(); !errors.Is(err, ErrTooManyHits) {
			t.Errorf("%s: %d hits, %v", over.Pattern, len(hits), err)
		}
	}
	wrong := Traffic{Pattern: "tide", Windows: MaxWindows + 1, Steady: -1, Burst: MaxHits + 1, List: []Hit{{At: 5}}}
	fields := map[string]bool{}
	for _, e := range wrong.Check() {
		fields[e.Field] = true
	}
	for _, field := range []string{"pattern", "window", "windows", "steady", "burst", "cost", "hits[0].at", "hits[0].cost"} {
		if !fields[field] {
			t.Errorf("%s is not refused", field)
		}
	}
	long := Traffic{Pattern: Steady, Window: model.MaxWindow, Windows: 2, Cost: 1}
	if bad := long.Check(); len(bad) != 1 || bad[0].Field != "windows" {
		t.Error(bad)
	}
}

// Every pattern gives the hits in order, within the play, and as many as it says.
func TestTrafficIsInOrder(t *testing.T) {
	for _, pattern := range []string{Steady, Bursts, Edge} {
		for _, window := range []int64{1, 7, 1000, 60e6, 86400e6} {
			traffic := Traffic{Pattern: pattern, Window: window, Windows: 5, Steady: 13, Burst: 21, Cost: 3}
			hits, err := traffic.Hits()
			if err != nil {
				t.Fatal(err)
			}
			if len(hits) < 13*5 || pattern != Steady && len(hits) == 13*5 {
				t.Errorf("%s of %d µs: %d hits", pattern, window, len(hits))
			}
			for i, h := range hits {
				if h.Cost != 3 || h.At < 0 || h.At >= traffic.Length() || i > 0 && h.At < hits[i-1].At {
					t.Fatalf("%s of %d µs: hit %d is %+v", pattern, window, i, h)
				}
			}
		}
	}
}

// What is ready made plays, by its own algorithm and by the others, and one of them refuses.
func TestPresets(t *testing.T) {
	for _, p := range Presets() {
		limit := compile(t, p.Spec)[0]
		refused := played(t, []*model.Limit{limit}, p.Traffic).Refused.Hits
		for _, spec := range Variants(limit.Limit, limit.Window, p.Spec.Burst) {
			r := played(t, compile(t, spec), p.Traffic)
			refused += r.Refused.Hits
			if r.Admitted.Hits == 0 {
				t.Errorf("%s, %s: nothing is admitted", p.Name, spec.Algorithm)
			}
		}
		if refused == 0 {
			t.Errorf("%s: nothing is refused", p.Name)
		}
	}
}

// A play that nobody waits for any more ends.
func TestPlayEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	hits, _ := (&Traffic{Pattern: Steady, Window: 1e6, Windows: 1, Steady: 100, Cost: 1}).Hits()
	if _, err := Play(ctx, compile(t, Variants(5, 1e6, nil)[2]), Periods(monthly), hits, 1e6); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The most that a play can cost: all hits through a plan's most limits of the dearest kind.
func BenchmarkPlay(b *testing.B) {
	hits, err := (&Traffic{Pattern: Steady, Window: 60e6, Windows: 10, Steady: 1000, Cost: 1}).Hits()
	if err != nil {
		b.Fatal(err)
	}
	for _, spec := range append(Variants(1000, 60e6, nil), model.Spec{Name: "all", Algorithm: "sliding_log", Limit: 1000, Window: "1h"}) {
		limits := compile(b, spec)
		b.Run(spec.Algorithm+spec.Window, func(b *testing.B) {
			for b.Loop() {
				if _, err := Play(context.Background(), limits, Periods(monthly), hits, 600e6); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
