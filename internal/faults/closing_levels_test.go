package faults

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"

	"quotad/internal/testkit/pgtest"
)

// sharedHolders are customers whose seats all callers take and give up. Others belong to one caller,
// which sets them, too.
const sharedHolders = 8

// hold has a caller take seats, give them up and set them until the end. Each operation is sent again
// until it is answered; held is what the answers say.
func (c *closers) hold(caller int) {
	random := rand.New(rand.NewPCG(c.seed, 0x5ea7+uint64(caller)))
	own := billedKey(sharedHolders + caller)
	for n := 0; !c.stop.Load(); n++ {
		pause(random, betweenCalls)
		key, cost := billedKey(random.IntN(sharedHolders)), 1+random.Int64N(8)
		if random.IntN(2) == 0 {
			key = own
		}
		id := fmt.Sprintf("%d-%d", caller, n)
		var rise int64
		var err error
		switch kind := random.IntN(3); {
		case kind == 0 && key == own:
			rise, err = cost-c.holds(own), c.ask(http.MethodPut, "/v1/customers/"+own+"/levels/seats", fmt.Sprintf(`{"level":%d}`, cost), random, nil)
		case kind < 2:
			rise, err = cost, c.ask(http.MethodPost, "/v1/hits", fmt.Sprintf(`{"customer":%q,"meter":"seats","cost":%d,"id":"s-%s"}`, key, cost, id), random, nil)
		default:
			var a content
			err = c.ask(http.MethodPost, "/v1/refunds", fmt.Sprintf(`{"customer":%q,"meter":"seats","cost":%d,"id":"b-%s"}`, key, cost, id), random, &a)
			if err == nil {
				rise = -*a.Refunded
			}
		}
		if err != nil {
			c.t.Errorf("seats of %s: %v", key, err)
			return
		}
		c.mu.Lock()
		c.held[key] += rise
		c.mu.Unlock()
	}
}

// ask sends an operation on seats until it is answered by 200.
func (c *closers) ask(method, path, body string, random *rand.Rand, into *content) error {
	o := &op{request: request{method, path, body, ""}, read: func(a *answer) (verdict, error) {
		if a.status != http.StatusOK || into != nil && a.Refunded == nil {
			return again, fmt.Errorf("no success")
		}
		return done, nil
	}}
	a, v, _, err := c.deliver(o, random.IntN(closingNodes), random)
	if err == nil && v != done {
		err = fmt.Errorf("status %d", a.status)
	}
	if err == nil && into != nil {
		*into = a.content
	}
	return err
}

func (c *closers) holds(key string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[key]
}

// wrongLevels are changes whose integral does not follow from the change before.
const wrongLevels = `SELECT count(*) FROM (
	SELECT integral - lag(integral) OVER w - lag(level) OVER w * (at - lag(at) OVER w) AS off FROM levels
	WINDOW w AS (PARTITION BY customer, meter ORDER BY at)) x WHERE off <> 0`

const lastLevels = `
	SELECT coalesce(jsonb_object_agg(key, level), '{}') FROM (
		SELECT DISTINCT ON (l.customer) c.key, l.level FROM levels l JOIN customers c ON c.id = l.customer ORDER BY l.customer, l.at DESC) x`

// compareLevels holds what is held against what the callers were told.
func (c *closers) compareLevels() {
	c.t.Helper()
	if n := pgtest.Query[int64](c.t, c.server.URL(), wrongLevels); n != 0 {
		c.t.Errorf("%d changes have a wrong integral", n)
	}
	var last map[string]int64
	if err := json.Unmarshal([]byte(pgtest.Query[string](c.t, c.server.URL(), lastLevels)), &last); err != nil {
		c.t.Fatal(err)
	}
	changes := pgtest.Query[int64](c.t, c.server.URL(), `SELECT count(*) FROM levels`)
	for key, want := range c.held {
		if last[key] != want {
			c.t.Errorf("%s holds %d seats, and callers were told of %d", key, last[key], want)
		}
	}
	c.t.Logf("seats of %d customers changed at %d instants", len(c.held), changes)
}
