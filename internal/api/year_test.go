package api

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/oracle"
)

// yearSize is how many customers live how long, and how many of them on one test clock.
type yearSize struct{ customers, months, onClock int }

// Customers live a year on test clocks, over the API. At each step their invoices must be those
// of the oracle, which shares no code with what it judges: each line, tax, credit and sum, to
// the minor unit. QUOTAD_SEED=new draws another year.
func TestYear(t *testing.T) {
	t.Parallel()
	size := yearSize{customers: 8, months: 14, onClock: 8}
	switch {
	case os.Getenv("QUOTAD_TEST_LONG") != "":
		size = yearSize{customers: 1000, months: 14, onClock: 50}
	case testing.Short():
		size = yearSize{customers: 5, months: 8, onClock: 5}
	}
	newYear(t).run(size)
}

// TestMoreYear has more customers live, of which more share a clock.
func TestMoreYear(t *testing.T) {
	t.Parallel()
	newYear(t).run(yearSize{customers: 16, months: 14, onClock: 12})
}

// A year is a run: a node, the oracle's world, and dice.
type year struct {
	*node
	dice   *rand.Rand
	world  *oracle.World
	plans  map[string][]string // keys by currency
	tags   map[string]string   // entity tags of plans
	last   int                 // number of the last id
	number map[string]string   // the invoice of each number
	steps  int
	acts   map[string]int // what was done, and how often
}

func newYear(t *testing.T) *year {
	seed := testkit.Seed(t)
	t.Logf("seed %d", seed)
	y := &year{
		node: newNode(t), dice: rand.New(rand.NewPCG(seed, 21)), world: oracle.NewWorld(),
		plans: map[string][]string{}, tags: map[string]string{}, number: map[string]string{}, acts: map[string]int{},
	}
	for _, meter := range yearMeters {
		y.want(201, "PUT", "/v1/meters/"+meter, `{"unit":"unit"}`)
	}
	for _, meter := range yearLevels {
		y.want(201, "PUT", "/v1/meters/"+meter, `{"unit":"unit","kind":"level"}`)
		y.world.IsLevel(meter)
	}
	y.want(201, "PUT", "/v1/sellers/north", `{"name":"North","prefix":"N-"}`)
	for _, currency := range slices.Sorted(maps.Keys(yearExponents)) { // in one order, so that the seed repeats the run
		for range 6 {
			y.newPlan(currency)
		}
	}
	return y
}

// run has groups of customers live, each on a clock of its own.
func (y *year) run(size yearSize) {
	for first := 0; first < size.customers; first += size.onClock {
		g := y.newGroup(min(size.onClock, size.customers-first))
		for end := g.clock.Now + int64(size.months)*30*24*int64(time.Hour/time.Microsecond); g.clock.Now < end; {
			g.step()
		}
		g.end()
		if y.t.Failed() {
			return
		}
	}
	y.numbers()
	if least := size.customers*size.months/40 - 1; y.acts["scheduled changes that came to count"] < least {
		y.t.Errorf("fewer than %d scheduled changes came to count: %v", least, y.acts)
	}
	y.t.Logf("%d steps; %v", y.steps, y.acts)
}

// one draws one of a list.
func one[T any](y *year, list ...T) T { return list[y.dice.IntN(len(list))] }

// chance is true once in n.
func (y *year) chance(n int) bool { return y.dice.IntN(n) == 0 }

// between draws an integer, bounds included.
func (y *year) between(least, most int64) int64 { return least + y.dice.Int64N(most-least+1) }

// id is an id that was not used before.
func (y *year) id() string {
	y.last++
	return "year-" + strconv.Itoa(y.last)
}

func (y *year) done(act string) { y.acts[act]++ }
