package catalog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/plans/store"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// truth is what the writer knows for certain of a customer from change number on: the
// number that targets must bear, and their limit.
type truth struct{ number, change, limit int64 }

// answer is what a reader was told, when its node had applied change seen.
type answer struct {
	customer            int
	seen, change, limit int64
}

// world is the only writer: two plans whose limits tell of plan and version, and
// customers that move between them.
type world struct {
	t         *testing.T
	store     *store.Store
	limit     map[string]int64 // of the plan's newest version
	written   map[string]int64 // the change that wrote it
	on        []string         // each customer's plan
	moved     []int64          // the change that put him there
	histories [][]truth        // each customer's, oldest first
}

func (w *world) writePlan(plan string) {
	w.limit[plan]++
	planstest.PutPlan(w.t, w.store, plan, planstest.Hourly(w.limit[plan]))
	w.written[plan] = planstest.ChangeNumber(w.t, w.store)
	for i := range w.on {
		if w.on[i] == plan {
			w.note(i, w.written[plan])
		}
	}
}

func (w *world) move(i int, plan string) {
	in := planstest.OnPlan(plan)
	in.Name = fmt.Sprint("as of ", len(w.histories[i])) // else a move to the same plan is no change
	c := planstest.PutCustomer(w.t, w.store, fmt.Sprint("c", i), in)
	w.on[i], w.moved[i] = plan, c.Change
	w.note(i, c.Change)
}

func (w *world) note(i int, number int64) {
	plan := w.on[i]
	w.histories[i] = append(w.histories[i], truth{number, max(w.moved[i], w.written[plan]), w.limit[plan]})
}

// check finds an answer in the customer's history, and no older than what held when it
// was asked for.
func (w *world) check(a answer) error {
	history := w.histories[a.customer]
	for i := len(history) - 1; i >= 0; i-- {
		if h := history[i]; h.change == a.change && h.limit == a.limit {
			return nil
		} else if h.number <= a.seen {
			return fmt.Errorf("%+v: by then %+v held, and what was said did not hold later", a, h)
		}
	}
	return fmt.Errorf("%+v was never true", a)
}

// Readers on two nodes with too small a memory resolve while the writer writes. No answer
// may be older than what its node had applied before it was asked, and none of a state
// that never was, such as a customer as he was before a move on a plan as it was after.
// With -race it is also the race test of the memory.
func TestResolvedTargetsWereTrueOnce(t *testing.T) {
	writes := 400
	if testing.Short() {
		writes = 100
	}
	resolvedTargets(t, writes)
}

// TestMoreResolvedTargets resolves during more writes.
func TestMoreResolvedTargets(t *testing.T) { resolvedTargets(t, 1100) }

func resolvedTargets(t *testing.T, writes int) {
	t.Helper()
	url := pgtest.NewDatabase(t)
	const customers, readers = 12, 8
	w := &world{
		t: t, store: planstest.NewStore(t, url), limit: map[string]int64{"a": 1e6, "b": 2e6}, written: map[string]int64{},
		on: make([]string, customers), moved: make([]int64, customers), histories: make([][]truth, customers),
	}
	planstest.Declare(t, w.store, "api")
	w.writePlan("a")
	w.writePlan("b")
	for i := range customers {
		w.move(i, "a")
	}
	options := testOptions()
	options.Customers = customers / 2
	nodes := []*Catalog{start(t, idleCatalog(t, url, options)), start(t, idleCatalog(t, url, options))}

	var done atomic.Bool
	var told atomic.Int64
	var reading sync.WaitGroup
	seed := testkit.Seed(t)
	answers := make([][]answer, readers)
	for r := range readers {
		reading.Go(func() {
			c, since, random := nodes[r%len(nodes)], int64(0), rand.New(rand.NewPCG(seed, uint64(r+1)))
			for n := 0; !done.Load(); n++ {
				// Readers that never rest leave the writer and the nodes' polls no processor. What
				// this test looks for happens at a change: from one on they do not rest.
				if now := c.Applied(); now != since {
					since, n = now, 0
				} else if n > 2000 {
					time.Sleep(50 * time.Microsecond)
				}
				a := answer{customer: random.IntN(customers), seen: c.Applied()}
				target, err := c.Resolve(t.Context(), fmt.Sprint("c", a.customer), "api", 0)
				if errors.Is(err, errOvertaken) {
					continue // the writer was faster; rare
				} else if err != nil {
					t.Error(err)
					return
				}
				a.change, a.limit = target.Change, planstest.LimitOf(target)
				if n := len(answers[r]); n == 0 || answers[r][n-1] != a {
					answers[r] = append(answers[r], a)
					told.Add(1)
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range writes {
		if plan := []string{"a", "b"}[random.IntN(2)]; random.IntN(2) == 0 {
			w.writePlan(plan)
		} else {
			w.move(random.IntN(customers), plan)
		}
		if least := int64(10 * i); told.Load() < least { // else the readers are ahead, as they should be
			testkit.Eventually(t, "readers that keep up", func() bool { return told.Load() >= least || t.Failed() })
		}
	}
	done.Store(true)
	reading.Wait()
	checked := 0
	for _, list := range answers {
		for _, a := range list {
			if err := w.check(a); err != nil {
				t.Fatal(err)
			}
			checked++
		}
	}
	if checked < 10*(writes-1) {
		t.Errorf("only %d answers during %d writes", checked, writes)
	}
	t.Logf("%d answers during %d writes", checked, writes)
}
