package faults

import (
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"quotad/internal/testkit"
)

// histories runs so many trials, some at once, so that they share transactions, and more
// while no answer was lost, with ids no outcome unknown, or what is wanted of them was not seen. see sees
// each once.
func (b *bench) histories(n int, see func(h []porcupine.Operation), enough func() bool) (all [][]porcupine.Operation) {
	for len(all) < n || len(all) < 10*n && (b.lost.Load() == 0 || b.ids && b.unknown.Load() == 0 || !enough()) {
		some := make([][]porcupine.Operation, 20)
		var running sync.WaitGroup
		for w := range 5 {
			running.Go(func() {
				for i := w; i < len(some); i += 5 {
					some[i] = b.try(int64(len(all) + i + 1))
				}
			})
		}
		running.Wait()
		for _, h := range some {
			see(h)
		}
		all = append(all, some...)
	}
	return all
}

// TestSmallHistoriesAreLinear checks that what three clients see at once of two engines, while
// connections to PostgreSQL break, can be put in an order in which the sequential model
// says the same. Models that are wrong in one rule do not explain it.
func TestSmallHistoriesAreLinear(t *testing.T) { smallHistories(t, sized(60, 120, 5000)) }

// TestMoreSmallHistoriesAreLinear checks the rest of the histories, by another seed.
func TestMoreSmallHistoriesAreLinear(t *testing.T) { smallHistories(t, 180) }

// smallHistories checks so many histories, and more until each wrong model was rejected.
func smallHistories(t *testing.T, least int) {
	t.Helper()
	seed := testkit.Seed(t)
	b := newBench(t, seed, true)
	broken := map[string]rules{
		"a unit more":                     {used: mostUsed + 1, inFlight: mostInFlight},
		"a unit less":                     {used: mostUsed - 1, inFlight: mostInFlight},
		"one more in flight":              {used: mostUsed, inFlight: mostInFlight + 1},
		"one less in flight":              {used: mostUsed, inFlight: mostInFlight - 1},
		"refunds of what was not charged": {used: mostUsed, inFlight: mostInFlight, refundAll: true},
		"the rest of a commit is kept":    {used: mostUsed, inFlight: mostInFlight, keepRest: true},
		"no reservation expires":          {used: mostUsed, inFlight: mostInFlight, eternal: true},
	}
	rejected := make(map[string]int)
	operations, checking := 0, time.Duration(0)
	b.odds(0.06)
	all := b.histories(least, func(h []porcupine.Operation) {
		began := time.Now()
		for _, o := range h {
			if o.Input.(step).kind != stepExpire {
				operations++
			}
		}
		if got := trueRules.linear(h); got != porcupine.Ok {
			t.Errorf("a history is not linear (%s):%s", got, lines(h))
		}
		for name, r := range broken {
			if r.linear(h) == porcupine.Illegal {
				rejected[name]++
			}
		}
		checking += time.Since(began)
	}, func() bool { return len(rejected) == len(broken) })
	b.odds(0)
	t.Logf("%d histories, %d operations, %d answers lost, %d outcomes unknown; checked in %s; broken models rejected: %v",
		len(all), operations, b.lost.Load(), b.unknown.Load(), checking.Round(time.Millisecond), rejected)
	for name := range broken {
		if rejected[name] == 0 {
			t.Errorf("a broken model explains all histories: %s", name)
		}
	}
	if b.unknown.Load() == 0 {
		t.Error("no outcome was unknown: this run proves nothing")
	}
}

// TestBlindRetriesAreNotLinear: hits without ids that are sent again when their answer was
// lost are charged twice at times, and no order explains that.
func TestBlindRetriesAreNotLinear(t *testing.T) {
	seed := testkit.Seed(t)
	b := newBench(t, seed, false, cutUnanswered)
	b.odds(0.1)
	rejected := 0
	all := b.histories(sized(60, 120, 1000), func(h []porcupine.Operation) {
		if trueRules.linear(h) == porcupine.Illegal {
			rejected++
		}
	}, func() bool { return rejected > 0 })
	b.odds(0)
	t.Logf("%d histories, %d answers lost, %d histories rejected", len(all), b.lost.Load(), rejected)
	if rejected == 0 {
		t.Error("hits were charged twice, and nobody noticed")
	}
}
