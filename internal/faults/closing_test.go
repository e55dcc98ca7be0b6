package faults

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// closingStep is a place on the way from an ended period to a paid invoice, and who dies there.
// Where it has an answer, the statement was done.
type closingStep struct {
	death          death
	name           string
	statement      string // a part of its text
	commit, answer bool   // see trap
}

// death is a way in which a step ends badly.
type death string

const (
	killed  death = "the node is killed"
	stopped death = "the node is stopped"
	crashed death = "PostgreSQL crashes"
)

const (
	insertsPeriods = "INSERT INTO periods"
	takesNumbers   = "UPDATE sellers SET next_number"
	finalizes      = "UPDATE invoices i SET status"
	pays           = "UPDATE invoices SET status = $2"
)

// closingSteps are at each statement that writes, and at the commits after.
var closingSteps = []closingStep{
	{killed, "due customers are locked", "FROM open_periods WHERE clock_id = t.id", false, true},
	{killed, "before the fences", "FROM customer_terms", false, false},
	{killed, "behind the fences", "FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[])", false, false},
	{killed, "the period is written", insertsPeriods, false, false},
	{stopped, "the period was written", insertsPeriods, false, true},
	{crashed, "the period is committed", insertsPeriods, true, false},
	{killed, "the period was committed", insertsPeriods, true, true},
	{killed, "numbers are taken", takesNumbers, false, false},
	{stopped, "numbers were taken", takesNumbers, false, true},
	{killed, "invoices are finalized", finalizes, false, false},
	{killed, "invoices were finalized", finalizes, false, true},
	{killed, "finalizing is committed", finalizes, true, false},
	{crashed, "finalizing was committed", finalizes, true, true},
	{killed, "an invoice is paid", pays, false, false},
	{killed, "an invoice was paid", pays, false, true},
	{crashed, "paying is committed", pays, true, false},
	{killed, "paying was committed", pays, true, true},
}

// billedCustomers are several times what one transaction takes, 20, so that several nodes have some.
const billedCustomers = 60

const (
	closingNodes   = 3
	closingHitters = 4 // callers who hit a flow meter
	closingHolders = 8 // callers who take seats, give them up and set them
)

// betweenCalls is the most that a caller waits before its next call. Callers that never wait take the
// processors from what they watch: some hundred calls a second meet each step as well as thousands do.
const betweenCalls = 60 * time.Millisecond

// closers are nodes that close the periods of the same customers, each with its own way to
// PostgreSQL, and clients that hit on.
type closers struct {
	*run
	t      *testing.T
	server *pgtest.Instance
	look   *looker
	ways   []*proxy
	begun  time.Time // of the server's supervisor
	month  int       // that the customers' clock shows
	stop   atomic.Bool
	hits   sync.WaitGroup

	mu       sync.Mutex
	admitted map[string]map[string]int64 // by customer and month, as callers were told
	held     map[string]int64            // seats, likewise
}

// TestClosingSurvives kills or stops a node, or crashes PostgreSQL, at every second step, with each kind of death.
func TestClosingSurvives(t *testing.T) {
	closingSurvives(t, func(step int) bool {
		if testing.Short() {
			return step%4 == 3
		}
		return isLong() || step%2 == 0
	})
}

// TestMoreClosingSurvives strikes at the other steps.
func TestMoreClosingSurvives(t *testing.T) {
	closingSurvives(t, func(step int) bool { return step%2 == 1 })
}

// closingSurvives has three nodes close, draft, finalize and pay periods under load, while at each step that is meant
// a node is killed or stopped, or PostgreSQL crashes. Each period has one
// invoice, numbers have no gap, and each unit is billed in the month that its caller was told. What
// is held is what callers were told, too. Some customers change their plan as each month ends.
func closingSurvives(t *testing.T, meant func(step int) bool) {
	t.Helper()
	seed := testkit.Seed(t)
	c := newClosers(t, seed)
	random := rand.New(rand.NewPCG(seed, 0xb111))
	for i := range closingHitters {
		c.hits.Go(func() { c.hit(i) })
	}
	for i := range closingHolders {
		c.hits.Go(func() { c.hold(i) })
	}
	t.Cleanup(func() { c.stop.Store(true) })
	for i := range closingSteps {
		s := &closingSteps[i]
		switch {
		case !meant(i):
		case isLong():
			for _, d := range []death{killed, stopped, crashed} {
				c.strike(s, d, random)
			}
		default:
			c.strike(s, s.death, random)
		}
	}
	c.stop.Store(true)
	c.hits.Wait()
	c.cluster.rest()
	c.schedule()
	c.month++
	c.move()
	c.done("all is billed", testkit.Patience)
	c.compare()
}

func newClosers(t *testing.T, seed uint64) *closers {
	t.Helper()
	c := &closers{t: t, server: pgtest.Server(t), begun: time.Now(), admitted: make(map[string]map[string]int64), held: make(map[string]int64)}
	url := c.server.URL()
	c.look = newLooker(t, url)
	cl := &cluster{t: t, binary: build(t), client: newHTTPClient(), url: url}
	cl.database = newProxy(t, addressOf(t, url), toPostgres, newDice(seed, 0, stalls))
	for range closingNodes {
		way := newProxy(t, addressOf(t, url), toPostgres, newDice(seed, 0, stalls))
		n := &node{flags: []string{"--lanes=1", "--close-step-timeout=" + testkit.Patience.String()}, url: throughProxy(t, url, way)}
		n.process = launch(t, cl.binary, n.url, n.flags...)
		n.front = newProxy(t, address{"tcp", n.process.at}, overHTTP, newDice(seed, 0, stalls))
		cl.nodes, c.ways = append(cl.nodes, n), append(c.ways, way)
	}
	t.Cleanup(cl.client.CloseIdleConnections)
	c.run = &run{seed: seed, ids: true, cluster: cl}
	if c.setUp(); t.Failed() {
		t.FailNow()
	}
	return c
}

// setUp writes customers on two plans, whose base is due before and after its period.
func (c *closers) setUp() {
	c.t.Helper()
	c.put("/v1/meters/api", `{"unit":"call"}`)
	c.put("/v1/meters/seats", `{"unit":"seat","kind":"level"}`)
	for _, when := range []string{"advance", "arrears"} {
		c.put("/v1/plans/"+when, `{"name":"P","currency":"USD","interval":"month","base_price_minor":1000,"base_in":"`+when+`",
			"limits":[{"name":"l","meter":"api","algorithm":"fixed_window","limit":1000000,"window":"1h","on_outage":"deny"}],
			"prices":[{"meter":"api","model":"per_unit","unit_price":"0.01"},
				{"meter":"seats","model":"per_unit","unit_price":"0.50","level_by":"`+map[string]string{"advance": "average", "arrears": "peak"}[when]+`"}]}`)
	}
	c.put("/v1/test-clocks/months", `{"now":"`+c.now()+`"}`)
	for i := range billedCustomers {
		c.put("/v1/customers/"+billedKey(i), `{"name":"C","plan":"`+[]string{"advance", "arrears"}[i%2]+`","timezone":"UTC",
			"billing_anchor":"2026-01-01T00:00:00","test_clock":"months"}`)
		if i%3 == 0 {
			c.want(http.MethodPost, "/v1/customers/"+billedKey(i)+"/credits", `{"amount_minor":1500,"currency":"USD","id":"gift"}`)
		}
	}
}

func billedKey(i int) string { return fmt.Sprintf("billed-%03d", i) }

// now is what the clock shows: two hours into a month, when the invoices of the one before are
// final.
func (c *closers) now() string {
	return time.Date(2026, time.Month(1+c.month), 1, 2, 0, 0, 0, time.UTC).Format(time.RFC3339)
}

// want sends a request until it is answered by success, as each of them may be sent again.
func (c *closers) want(method, path, body string) *answer {
	o := &op{request: request{method, path, body, ""}, read: func(a *answer) (verdict, error) {
		if a.status/100 != 2 {
			return again, fmt.Errorf("no success")
		}
		return done, nil
	}}
	a, _, _, err := c.deliver(o, c.month, rand.New(rand.NewPCG(c.seed, uint64(c.month))))
	if err != nil {
		c.t.Errorf("%s %s: %v", method, path, err)
		return &answer{}
	}
	return a
}

func (c *closers) put(path, body string) { c.t.Helper(); c.want(http.MethodPut, path, body) }

// move has the customers' clock show the month.
func (c *closers) move() {
	c.put("/v1/test-clocks/months", `{"now":"`+c.now()+`"}`)
}

// hit has customers hit until the end, each hit sent again until it is answered.
func (c *closers) hit(client int) {
	random := rand.New(rand.NewPCG(c.seed, uint64(client)))
	for n := 0; !c.stop.Load(); n++ {
		pause(random, betweenCalls)
		key, cost := billedKey(random.IntN(billedCustomers)), 1+random.Int64N(8)
		body := fmt.Sprintf(`{"customer":%q,"meter":"api","cost":%d,"id":"h-%d-%d"}`, key, cost, client, n)
		o := &op{read: readHit, request: request{http.MethodPost, "/v1/hits", body, ""}}
		a, v, _, err := c.deliver(o, random.IntN(closingNodes), random)
		if err != nil || v != done {
			c.t.Errorf("a hit of %s: %v", key, err)
			return
		}
		c.mu.Lock()
		if c.admitted[key] == nil {
			c.admitted[key] = make(map[string]int64)
		}
		c.admitted[key][a.At[:len("2026-01")]] += cost
		c.mu.Unlock()
	}
}

// strike lets a node come to a step, and has it or PostgreSQL die there.
func (c *closers) strike(s *closingStep, death death, random *rand.Rand) {
	c.t.Helper()
	what := s.name + ": " + string(death)
	if s.statement != pays {
		c.schedule()
	}
	traps, began := make([]*trap, len(c.ways)), time.Now()
	for i, way := range c.ways {
		traps[i] = newTrap(s.statement, s.commit, s.answer)
		way.trap.Store(traps[i])
	}
	var moving sync.WaitGroup
	if s.statement == pays {
		moving.Go(func() { c.pay(random) })
	} else {
		c.month++
		moving.Go(c.move)
	}
	struck := firstReached(c.t, what, traps)
	for i, way := range c.ways {
		if i != struck {
			way.trap.Store(nil)
		}
	}
	if death == stopped {
		c.signal(struck, syscall.SIGSTOP)
	}
	for i := range traps { // others may have come there, too
		if i != struck {
			close(traps[i].over)
		}
	}
	switch death {
	case killed:
		c.cluster.strike(struck)
	case stopped:
		if s.statement != pays {
			c.done(what+", by the other nodes", doneLimit)
		}
		c.signal(struck, syscall.SIGCONT)
	case crashed:
		if time.Since(c.begun) > supervised {
			c.server.Restart()
			c.begun = time.Now()
		}
		c.server.Crash()
		c.server.WaitReady()
	}
	c.ways[struck].trap.Store(nil)
	close(traps[struck].over)
	moving.Wait()
	limit := doneLimit
	if death == crashed { // no transaction outlives that
		limit = testkit.Patience
	}
	c.done(what, limit)
	c.t.Logf("%s: node %d, %s", what, struck, time.Since(began).Round(10*time.Millisecond))
}

func (c *closers) signal(node int, s syscall.Signal) {
	c.t.Helper()
	if err := c.cluster.nodes[node].process.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// doneLimit is how long it takes until what is due is done, though somebody died within it, in a long run.
// It is less than a dead node's transaction could live by the pool's own settings.
const doneLimit = 25 * time.Second

// billingDone reports whether the clock shows a time, and nothing is due by then.
const billingDone = `
	SELECT now = (extract(epoch FROM $1::timestamptz) * 1000000)::bigint
		AND NOT EXISTS (SELECT FROM open_periods o WHERE o.clock_id = t.id AND o.due_at <= t.now)
	FROM test_clocks t`

// done waits until nothing is due any more.
func (c *closers) done(what string, limit time.Duration) {
	c.t.Helper()
	took := testkit.Eventually(c.t, what+": all that is due is done", func() bool { return c.look.holds(c.t, billingDone, c.now()) })
	if isLong() && took > limit {
		c.t.Errorf("%s: what is due was done after %s", what, took)
	}
}

// pay pays some of the invoices that are due. One whose payment was done and not answered is paid
// already when it is asked for again.
func (c *closers) pay(random *rand.Rand) {
	var list struct {
		Items []struct {
			ID string `json:"id"`
		} `json:"items"`
	}
	if err := json.Unmarshal(c.want(http.MethodGet, "/v1/invoices?status=finalized&test_clock=any&limit=5", "").raw, &list); err != nil || len(list.Items) == 0 {
		c.t.Errorf("%d invoices are to be paid, %v", len(list.Items), err)
	}
	for _, i := range list.Items {
		what := request{http.MethodPost, "/v1/invoices/" + i.ID + "/pay", `{"reference":"bank"}`, ""}
		testkit.Eventually(c.t, "an invoice is paid", func() bool {
			a, _ := c.cluster.send(what, random.IntN(closingNodes)) // an invoice is no content
			return a.status == http.StatusOK || a.status == http.StatusConflict
		})
	}
}

// wrongInvoices are queries that must find nothing.
var wrongInvoices = map[string]string{
	"periods without an invoice, or with two": `SELECT count(*) FROM periods p WHERE (
		SELECT count(*) FROM invoices i WHERE i.customer_id = p.customer_id AND i.n = p.n AND i.kind = 'period' AND i.status IN ('finalized', 'paid')) <> 1`,
	"openings more than one": `SELECT count(*) FROM (SELECT FROM invoices WHERE kind = 'opening' GROUP BY customer_id HAVING count(*) > 1) x`,
	"gaps of numbers":        `SELECT max(number) - count(DISTINCT number) + count(*) - count(DISTINCT number) FROM invoices`,
	"numbers taken in vain":  `SELECT next_test_number - 1 - (SELECT count(*) FROM invoices) FROM sellers WHERE key = 'default'`,
	"credits taken twice":    `SELECT count(*) FROM credits c WHERE left_minor <> amount_minor - (SELECT coalesce(sum(credits_minor), 0) FROM invoices i WHERE i.customer_id = c.customer_id)`,
	"blocked customers":      `SELECT count(*) FROM open_periods WHERE blocked IS NOT NULL`,
}

const billedUnits = `
	SELECT coalesce(jsonb_object_agg(key, months), '{}') FROM (
		SELECT c.key, jsonb_object_agg(to_char(to_timestamp(l.from_at / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM'), l.quantity) AS months
		FROM invoice_lines l JOIN invoices i ON i.id = l.invoice_id JOIN customers c ON c.id = i.customer_id
		WHERE l.kind = 'usage' AND l.meter = 'api' AND l.quantity > 0 GROUP BY c.key) x`

// compare holds what is billed against what the callers were told, month by month. Nothing is
// open: all hits came before the clock moved on for the last time.
func (c *closers) compare() {
	c.t.Helper()
	reconciled(c.t, c.cluster)
	c.compareLevels()
	c.compareChanges()
	for what, query := range wrongInvoices {
		if n := pgtest.Query[int64](c.t, c.server.URL(), query); n != 0 {
			c.t.Errorf("%s: %d", what, n)
		}
	}
	if n := pgtest.Query[int64](c.t, c.server.URL(), `SELECT count(*) FROM periods`); n != int64(billedCustomers*c.month) {
		c.t.Errorf("%d periods of %d customers over %d months", n, billedCustomers, c.month)
	}
	var billed map[string]map[string]int64
	if err := json.Unmarshal([]byte(pgtest.Query[string](c.t, c.server.URL(), billedUnits)), &billed); err != nil {
		c.t.Fatal(err)
	}
	var units, wrong int64
	for i := range billedCustomers {
		key := billedKey(i)
		for month := range c.month + 1 {
			at := time.Date(2026, time.Month(1+month), 1, 0, 0, 0, 0, time.UTC).Format("2006-01")
			units += billed[key][at]
			if got, want := billed[key][at], c.admitted[key][at]; got != want && wrong < maxShown {
				wrong++
				c.t.Errorf("%s: %d units of %s are billed, and callers were told of %d", key, got, at, want)
			}
		}
	}
	c.t.Logf("%d units billed", units)
}
