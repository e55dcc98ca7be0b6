package faults

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// thresholdSteps are where a node is killed: as it writes what a charge has reached, and as it gives that
// an id. See trap.
var thresholdSteps = []struct {
	name, statement string
	commit, answer  bool
}{
	{"a charge reaches a threshold", "quotad_locked_reached", false, false},
	{"a charge has reached one", "quotad_locked_reached", false, true},
	{"what was reached is taken", "DELETE FROM thresholds", false, false},
	{"what was reached was taken", "DELETE FROM thresholds", false, true},
	{"taking it is committed", "DELETE FROM thresholds", true, false},
	{"taking it was committed", "DELETE FROM thresholds", true, true},
}

const notifiedCustomers = 10

func notifiedKey(i int) string { return fmt.Sprintf("notified-%d", i) }

// TestThresholdsSurvive: eight clients use up the month of ten customers on three nodes, while at each step
// from the charge to the event's id the node that is there is killed. In each month each threshold that was
// reached is told once.
func TestThresholdsSurvive(t *testing.T) {
	seed := testkit.Seed(t)
	url := pgtest.Server(t).URL()
	cl := &cluster{t: t, binary: build(t), client: newHTTPClient(), url: url}
	cl.database = newProxy(t, addressOf(t, url), toPostgres, newDice(seed, 0, stalls))
	var ways []*proxy
	for range 3 {
		way := newProxy(t, addressOf(t, url), toPostgres, newDice(seed, 0, stalls))
		n := &node{flags: []string{"--lanes=1"}, url: throughProxy(t, url, way)}
		n.process = launch(t, cl.binary, n.url, n.flags...)
		n.front = newProxy(t, address{"tcp", n.process.at}, overHTTP, newDice(seed, 0, stalls))
		cl.nodes, ways = append(cl.nodes, n), append(ways, way)
	}
	t.Cleanup(cl.client.CloseIdleConnections)
	c := &closers{t: t, look: newLooker(t, url), run: &run{seed: seed, ids: true, cluster: cl}}
	c.put("/v1/meters/api", `{"unit":"call"}`)
	c.put("/v1/plans/notified", `{"name":"P","currency":"USD","interval":"month","base_price_minor":0,"prices":[],"limits":[
		{"name":"month","meter":"api","algorithm":"fixed_window","limit":100,"window":"calendar_month","on_outage":"deny","notify":[20,50,80,95,100]}]}`)
	c.put("/v1/test-clocks/months", `{"now":"`+c.now()+`"}`)
	for i := range notifiedCustomers {
		c.put("/v1/customers/"+notifiedKey(i), `{"name":"C","plan":"notified","timezone":"UTC","test_clock":"months"}`)
	}
	for i := range thresholdSteps {
		if testing.Short() && i%3 != 1 {
			continue
		}
		c.month++
		c.move()
		c.useUp(i, ways)
		c.toldOnce(thresholdSteps[i].name)
	}
}

// useUp has all customers use up the month, and kills the node that comes to a step.
func (c *closers) useUp(step int, ways []*proxy) {
	c.t.Helper()
	s := thresholdSteps[step]
	traps := make([]*trap, len(ways))
	for i, way := range ways {
		traps[i] = newTrap(s.statement, s.commit, s.answer)
		way.trap.Store(traps[i])
	}
	var full atomic.Bool
	var clients sync.WaitGroup
	defer func() {
		full.Store(true)
		clients.Wait()
	}()
	for client := range 8 {
		random := rand.New(rand.NewPCG(c.seed, uint64(100*step+client)))
		clients.Go(func() {
			for n := 0; !full.Load(); n++ {
				body := fmt.Sprintf(`{"customer":%q,"meter":"api","cost":%d`, notifiedKey(random.IntN(notifiedCustomers)), 1+random.IntN(6))
				if n%3 == 0 { // sent again until it is answered
					o := &op{
						read:    func(*answer) (verdict, error) { return done, nil },
						request: request{http.MethodPost, "/v1/hits", fmt.Sprintf(`%s,"id":"h-%d-%d-%d"}`, body, step, client, n), ""},
					}
					if _, _, _, err := c.deliver(o, random.IntN(3), random); err != nil {
						c.t.Error(err)
						return
					}
				} else {
					_, _ = c.cluster.send(request{http.MethodPost, "/v1/hits", body + "}", ""}, random.IntN(3))
				}
				pause(random, 40*time.Millisecond)
			}
		})
	}
	struck := firstReached(c.t, s.name, traps)
	for i, way := range ways {
		if way.trap.Store(nil); i != struck {
			close(traps[i].over)
		}
	}
	c.cluster.strike(struck)
	close(traps[struck].over)
	testkit.Eventually(c.t, "the month is used up", func() bool {
		for i := range notifiedCustomers {
			if c.usedBy(i) < 100 {
				return false
			}
		}
		return true
	})
}

// usedBy is what a customer has used in the month; below 0 where nobody says.
func (c *closers) usedBy(i int) int64 {
	a, err := c.cluster.send(request{http.MethodGet, "/v1/customers/" + notifiedKey(i) + "/quota", "", ""}, i%3)
	if err != nil || len(a.Limits) == 0 {
		return -1
	}
	return a.Limits[0].Used
}

// toldOnce makes sure that all customers were told of each threshold of the month, once.
func (c *closers) toldOnce(step string) {
	c.t.Helper()
	month := time.Date(2026, time.Month(1+c.month), 1, 0, 0, 0, 0, time.UTC).Format(time.RFC3339)
	told := func() map[string]int {
		all, after := make(map[string]int), int64(0)
		for {
			a, err := c.cluster.send(request{http.MethodGet, fmt.Sprintf("/v1/events?type=limit.threshold&limit=1000&after=%d", after), "", ""}, 0)
			var page struct {
				Items []struct {
					ID       int64
					Customer string
					Data     struct {
						Percent     int
						WindowStart string `json:"window_start"`
					}
				}
			}
			if err == nil {
				err = json.Unmarshal(a.raw, &page)
			}
			if err != nil || a.status != http.StatusOK {
				return nil
			}
			for _, e := range page.Items {
				if after = e.ID; e.Data.WindowStart == month {
					all[fmt.Sprintf("%s %d", e.Customer, e.Data.Percent)]++
				}
			}
			if len(page.Items) < 1000 {
				return all
			}
		}
	}
	quiet(c.t, c.cluster.url) // what was reached is written
	testkit.Eventually(c.t, "all that was reached is told", func() bool {
		return c.look.holds(c.t, "SELECT NOT EXISTS (SELECT FROM thresholds)")
	})
	var all map[string]int
	testkit.Eventually(c.t, "a node tells", func() bool { all = told(); return all != nil })
	for i := range notifiedCustomers {
		for _, percent := range []int{20, 50, 80, 95, 100} {
			if n := all[fmt.Sprintf("%s %d", notifiedKey(i), percent)]; n != 1 {
				c.t.Errorf("%s: %s was told %d times of %d percent", step, notifiedKey(i), n, percent)
			}
		}
	}
}
