package api

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"quotad/internal/api/hits"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// ratedCustomer is the oracle of a customer with one token bucket: exact fractions of what it has,
// by the contract's words alone.
type ratedCustomer struct {
	key      string
	onClock  bool
	plan     string
	joined   int
	pinned   int
	override int64 // −1: none
	ends     int64 // of the override, 0: never
	missing  *big.Rat
	since    int64
	charges  int
	edits    []ratedEdit // since the last charge, and the one before
}

type ratedEdit struct{ at, rate int64 }

const (
	ratedBurst  = 1000
	ratedWindow = 10_000_000 // µs
)

// world is what the random run knows of all plans, and the nodes that it asks.
type ratedWorld struct {
	t                        *testing.T
	draw                     *rand.Rand
	url                      string
	nodes                    []*node
	now                      time.Time                 // of the test clock
	plans                    map[string][]ratedVersion // by key
	customers                []*ratedCustomer
	writes, hits             int
	admitted, refused, again int
}

type ratedVersion struct {
	limit int64
	all   bool
}

// rate is what the customer's limit is at an instant.
func (w *ratedWorld) rate(c *ratedCustomer, at int64) int64 {
	if c.override >= 0 && (c.ends == 0 || at < c.ends) {
		return c.override
	}
	in := c.joined
	for i, v := range w.plans[c.plan] {
		if v.all && i+1 > in {
			in = i + 1
		}
	}
	if c.pinned > 0 {
		in = c.pinned
	}
	return w.plans[c.plan][in-1].limit
}

// ended notes the end of an override that came before an instant.
func (w *ratedWorld) ended(c *ratedCustomer, at int64) {
	if c.override >= 0 && c.ends > 0 && c.ends <= at {
		ends := c.ends
		c.override, c.ends = -1, 0
		c.edits = append(c.edits, ratedEdit{ends, w.rate(c, ends)})
	}
}

// edited notes that what changed at an instant may have changed the customer's rate.
func (w *ratedWorld) edited(c *ratedCustomer, at int64) {
	c.edits = append(c.edits, ratedEdit{at, w.rate(c, at)})
}

// stands is what is missing at an instant.
func (c *ratedCustomer) stands(at int64) *big.Rat {
	level := new(big.Rat).Set(c.missing)
	for i, e := range c.edits {
		from, to := max(e.at, c.since), at
		if i+1 < len(c.edits) {
			to = min(to, c.edits[i+1].at)
		}
		if from < to {
			back := big.NewRat(to-from, ratedWindow)
			level.Sub(level, back.Mul(back, big.NewRat(e.rate, 1)))
		}
	}
	if level.Sign() < 0 {
		level.SetInt64(0)
	}
	return level
}

// instant is when something was written, by a customer's clock; sql says by PostgreSQL's.
func (w *ratedWorld) instant(c *ratedCustomer, sql string, args ...any) (at int64) {
	w.t.Helper()
	if c.onClock {
		return w.now.UnixMicro()
	}
	check(w.t, w.node().store.Pool().QueryRow(w.t.Context(), sql, args...).Scan(&at))
	return at
}

func (w *ratedWorld) node() *node { return w.nodes[w.draw.IntN(len(w.nodes))] }

// write does one write, and waits until all nodes know it.
func (w *ratedWorld) write(method, path, body string) {
	w.t.Helper()
	if got := w.tryWrite(method, path, body); got.status >= 300 {
		w.t.Fatalf("%s %s %s: %s", method, path, body, got.text)
	}
}

// tryWrite is write that may be refused.
func (w *ratedWorld) tryWrite(method, path, body string) reply {
	w.t.Helper()
	w.writes++
	n := w.node()
	got := n.do(method, path, body)
	if got.status == 428 {
		got = n.do(method, path, body, "If-Match", "*")
	}
	var number int64
	check(w.t, w.nodes[0].store.Pool().QueryRow(w.t.Context(), `SELECT number FROM change_number`).Scan(&number))
	for _, n := range w.nodes {
		check(w.t, n.server.Catalog.CatchUp(w.t.Context(), number))
	}
	return got
}

// putOverride gives a customer an override that ends after a time, or, with 0, never. It returns when. An
// end in real time that is over when it is written is refused. Then another is written.
func (w *ratedWorld) putOverride(c *ratedCustomer, path string, limit int64, lasts time.Duration) (ends int64) {
	w.t.Helper()
	for {
		end, expires := w.now, "null"
		if !c.onClock {
			end = w.nodes[0].nowOf().Add(150 * time.Millisecond)
		}
		if end = end.Add(lasts).UTC(); lasts > 0 {
			ends, expires = end.UnixMicro(), fmt.Sprintf("%q", end.Format(time.RFC3339Nano))
		}
		body := fmt.Sprintf(`{"limit":%d,"burst":%d,"expires_at":%s}`, limit, ratedBurst, expires)
		got := w.tryWrite("PUT", path, body)
		if got.status < 300 {
			return ends
		}
		if late := !c.onClock && lasts > 0 && got.status == 422 && !w.nodes[0].nowOf().Before(end); !late {
			w.t.Fatalf("PUT %s %s: %s", path, body, got.text)
		}
	}
}

var ratedLimits = []int64{1, 7, 60, 600, 999, 6000}

func (w *ratedWorld) limit() int64 { return ratedLimits[w.draw.IntN(len(ratedLimits))] }

// putPlan writes the next version of a plan.
func (w *ratedWorld) putPlan(key string, limit int64, all bool) {
	w.t.Helper()
	apply := "new"
	if all {
		apply = "all"
	}
	w.write("PUT", "/v1/plans/"+key, fmt.Sprintf(`{"name":"P","currency":"USD","interval":"month","apply_to":%q,"limits":[
		{"name":"other","meter":"requests","algorithm":"fixed_window","limit":%d,"window":"1d"},
		{"name":"bucket","meter":"requests","algorithm":"token_bucket","limit":%d,"window":"10s","burst":%d}]}`,
		apply, 1_000_000_000+w.writes, limit, ratedBurst))
	at := make([]int64, len(w.customers))
	for i, c := range w.customers {
		at[i] = w.instant(c, `SELECT (extract(epoch FROM created_at) * 1000000)::bigint FROM plan_versions v JOIN plans p ON p.id = v.plan_id
			WHERE p.key = $1 AND v.version = p.latest_version`, key)
		w.ended(c, at[i])
	}
	w.plans[key] = append(w.plans[key], ratedVersion{limit, all})
	for i, c := range w.customers {
		w.edited(c, at[i])
	}
}

// putCustomer writes a customer: its plan and pin, or nothing that its limits depend on.
func (w *ratedWorld) putCustomer(c *ratedCustomer, plan string, pin int) {
	w.t.Helper()
	pinned := ""
	if pin > 0 {
		pinned = fmt.Sprintf(`"plan_version":%d,`, pin)
	}
	w.write("PUT", "/v1/customers/"+c.key, fmt.Sprintf(`{"name":"N%d","plan":%q,%s"metadata":{"n":"%d"}}`, w.writes, plan, pinned, w.writes))
	if plan == c.plan && pin == c.pinned {
		return
	}
	at := w.instant(c, `SELECT limits_at FROM customer_terms WHERE customer_id = (SELECT id FROM customers WHERE key = $1) ORDER BY change DESC LIMIT 1`, c.key)
	w.ended(c, at)
	if c.pinned = pin; plan != c.plan {
		c.plan, c.joined = plan, len(w.plans[plan])
	}
	w.edited(c, at)
}

// edit writes something at random.
func (w *ratedWorld) edit() {
	w.t.Helper()
	c := w.customers[w.draw.IntN(len(w.customers))]
	plans := []string{"p1", "p2"}
	path := "/v1/customers/" + c.key + "/overrides/bucket"
	const written = `SELECT at FROM limit_rates WHERE customer_id = (SELECT id FROM customers WHERE key = $1) AND limit_name = 'bucket'`
	switch w.draw.IntN(9) {
	case 0, 1:
		w.putPlan(plans[w.draw.IntN(2)], w.limit(), w.draw.IntN(4) > 0)
	case 2:
		w.putCustomer(c, plans[w.draw.IntN(2)], 0)
	case 3:
		w.putCustomer(c, c.plan, 1+w.draw.IntN(len(w.plans[c.plan])))
	case 4, 5, 6:
		limit, lasts := w.limit(), time.Duration(0)
		if w.draw.IntN(3) > 0 {
			lasts = time.Duration(1+w.draw.IntN(3_000_000)) * time.Microsecond
		}
		ends := w.putOverride(c, path, limit, lasts)
		at := w.instant(c, written, c.key)
		w.ended(c, at)
		c.override, c.ends = limit, ends
		w.edited(c, at)
	case 7:
		w.putCustomer(c, c.plan, c.pinned)
		w.write("PUT", "/v1/customers/bystander/overrides/bucket", fmt.Sprintf(`{"limit":%d,"burst":5}`, w.limit()))
	default:
		if c.onClock {
			w.ended(c, w.now.UnixMicro())
		}
		if c.override < 0 || c.ends > 0 && !c.onClock { // its end may come first
			return
		}
		w.write("DELETE", path, "")
		at := w.instant(c, `SELECT coalesce((`+written+`), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)`, c.key)
		c.override, c.ends = -1, 0
		w.edited(c, at)
	}
}

// hit sends a hit and holds its answer against the fractions. One that overruns is charged, whatever is left.
func (w *ratedWorld) hit(c *ratedCustomer, cost int64, overruns bool) {
	w.t.Helper()
	w.hits++
	id := ""
	if w.draw.IntN(3) > 0 { // never from memory
		id = fmt.Sprintf(`,"id":"%d"`, w.hits)
	}
	got := w.node().do("POST", hits.Pattern, fmt.Sprintf(`{"customer":%q,"meter":"requests","cost":%d,"overrun":%t%s}`, c.key, cost, overruns, id))
	if got.status != 200 && (got.status != 429 || overruns) {
		w.t.Fatal(got.text)
	}
	instant, err := time.Parse(time.RFC3339Nano, got.json["at"].(string))
	check(w.t, err)
	at := instant.UnixMicro()
	w.ended(c, at)
	level := c.stands(at)
	if got.status == 200 {
		w.admitted++
		level.Add(level, big.NewRat(cost, 1))
		last := ratedEdit{0, w.rate(c, at)}
		c.missing, c.since, c.charges, c.edits = level, at, c.charges+1, []ratedEdit{last}
	} else {
		w.refused++
	}
	// Each charge and each edit may round up by a part of a unit, and never down.
	room := new(big.Rat).Sub(big.NewRat(ratedBurst, 1), level)
	most := new(big.Int).Div(room.Num(), room.Denom()).Int64()
	room.Sub(room, big.NewRat(1, 5))
	least := new(big.Int).Div(room.Num(), room.Denom()).Int64()
	left := int64(got.limits()["bucket"]["remaining"].(float64))
	memory := got.json["as_of"] != nil
	if memory { // of before another node's charge: it may show more than there is
		most = max(most, left)
	}
	if left > max(most, 0) || left < max(least, 0) || got.status == 429 && least >= cost || got.status == 200 && most < 0 && !overruns {
		w.t.Fatalf("%s, cost %d at %d: %d with %d left, want %d to %d; edits since %d: %v\n%s", c.key, cost, at, got.status, left, least, most, c.since,
			c.edits, got.text)
	}
	if wait, is := got.json["retry_after_ms"].(float64); got.status == 429 && is && !memory {
		w.comeBack(c, cost, at, at+int64(wait)*1000)
	}
}

// comeBack waits as a refusal said, while the customer is renamed, and sends the hit again.
func (w *ratedWorld) comeBack(c *ratedCustomer, cost, at, then int64) {
	w.t.Helper()
	if then-at > 400_000 && !c.onClock {
		return
	}
	w.putCustomer(c, c.plan, c.pinned)
	if c.onClock {
		w.set(time.UnixMicro(then))
	} else {
		testkit.Eventually(w.t, "the wait is over", func() bool {
			var now int64
			check(w.t, w.nodes[0].store.Pool().QueryRow(w.t.Context(), `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 20000`).Scan(&now))
			return now >= then
		})
	}
	if c.override >= 0 && c.ends > 0 && then >= c.ends {
		return // another limit counts then
	}
	w.again++
	before := w.admitted
	w.hit(c, cost, false)
	if w.admitted == before {
		w.t.Fatalf("%s: told to come back at %d, and refused again", c.key, then)
	}
}

// set sets the test clock.
func (w *ratedWorld) set(to time.Time) {
	w.t.Helper()
	if to = to.UTC(); to.After(w.now) {
		w.now = to
		w.write("PUT", "/v1/test-clocks/c1", fmt.Sprintf(`{"now":%q}`, to.Format(time.RFC3339Nano)))
	}
}

// restart prunes the changes and puts a node that knows nothing in a node's place.
func (w *ratedWorld) restart() {
	w.t.Helper()
	_, err := w.nodes[0].store.Pool().Exec(w.t.Context(), `DELETE FROM changes WHERE number < (SELECT number FROM change_number)`)
	check(w.t, err)
	w.nodes[w.draw.IntN(len(w.nodes))] = newNodeOn(w.t, w.url)
}

// TestEditsAgainstFractions: whatever is written between the charges, and on whichever node, a
// bucket has what exact fractions say.
func TestEditsAgainstFractions(t *testing.T) {
	t.Parallel()
	w := &ratedWorld{t: t, draw: rand.New(rand.NewPCG(testkit.Seed(t), 0)), url: pgtest.NewDatabase(t), plans: make(map[string][]ratedVersion)}
	w.nodes = []*node{newNodeOn(t, w.url), newNodeOn(t, w.url)}
	w.write("PUT", "/v1/meters/requests", `{"unit":"request"}`)
	w.set(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	w.putPlan("p1", 600, true)
	w.putPlan("p2", 60, true)
	for i, key := range []string{"timed", "real", "bystander"} {
		clock := ""
		if i == 0 {
			clock = `,"test_clock":"c1"`
		}
		w.write("PUT", "/v1/customers/"+key, `{"name":"N","plan":"p1"`+clock+`}`)
		if i < 2 {
			w.customers = append(w.customers, &ratedCustomer{
				key: key, onClock: i == 0, plan: "p1", joined: 1, override: -1, missing: new(big.Rat),
				edits: []ratedEdit{{0, 600}},
			})
		}
	}
	steps := 600
	if testing.Short() {
		steps = 200
	}
	for range steps {
		switch c := w.customers[w.draw.IntN(len(w.customers))]; w.draw.IntN(10) {
		case 0, 1, 2, 3:
			w.edit()
		case 4:
			w.set(w.now.Add(time.Duration(w.draw.IntN(2_000_000)) * time.Microsecond))
		default:
			w.hit(c, []int64{1, 7, 100, 500, 999}[w.draw.IntN(5)], false)
		}
		for _, c := range w.customers {
			if len(c.edits) > 6 { // more than 8 need not be remembered
				w.hit(c, 1, true)
			}
		}
		if w.draw.IntN(steps/2) == 0 {
			w.restart()
		}
	}
	t.Logf("%d writes, %d admitted, %d refused, %d sent again after the wait", w.writes, w.admitted, w.refused, w.again)
	if w.admitted == 0 || w.refused == 0 || w.again == 0 {
		t.Error("the run says nothing")
	}
}
