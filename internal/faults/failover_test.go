package faults

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// failover is two nodes on a server that has an asynchronous standby, and hits at a steady pace.
type failover struct {
	t      *testing.T
	proxy  *proxy // where the nodes find whichever server is the primary
	nodes  [2]*process
	client *http.Client

	stop    chan struct{}
	callers sync.WaitGroup
	mu      sync.Mutex
	failed  []failedHit
	hits    atomic.Int64
}

// failedHit is a hit that was answered by 5xx, or not at all.
type failedHit struct {
	sent time.Time
	what string
}

const (
	failoverCustomers = 40
	failoverPace      = 300 // hits a second over both nodes
	lostWrites        = 7
	// recovery is how long after a promotion hits may fail in a long run. Otherwise they may until each
	// node has answered all customers.
	recovery = 2 * time.Second
	// failoverLines is how many lines both nodes may log of one failover. One that takes minutes, as on a
	// machine that stalls, has lines that come again: of it their kinds count.
	failoverLines = 20
)

// TestFailoverThatLosesAdminWrites: a server dies, and its standby lacks the last admin writes,
// which all nodes have judged hits by. Soon after the promotion no hit fails any more, and the
// limits from before those writes count. The numbers are drawn again by other writes, and then
// those count.
func TestFailoverThatLosesAdminWrites(t *testing.T) {
	binary, first := build(t), pgtest.Server(t)
	primary := first.Replica()
	primary.Promote()
	first.Stop()
	f := &failover{t: t, client: newHTTPClient(), stop: make(chan struct{})}
	t.Cleanup(f.client.CloseIdleConnections)
	t.Cleanup(first.Start) // it is stopped with the test
	f.proxy = newProxy(t, addressOf(t, primary.URL()), toPostgres, newDice(testkit.Seed(t), 0, 0))
	flags := []string{"--lanes=2"}
	if !isLong() {
		flags = append(flags, steady...)
	}
	for i := range f.nodes {
		f.nodes[i] = launch(t, binary, throughProxy(t, primary.URL(), f.proxy), flags...)
	}
	f.write("/v1/meters/calls", `{"unit":"call"}`)
	f.limit(1000)
	for c := range failoverCustomers {
		f.write("/v1/customers/"+keyOf(c), `{"name":"C","plan":"basic","timezone":"UTC"}`)
	}
	f.callers.Go(f.call)
	t.Cleanup(func() { close(f.stop); f.callers.Wait() })
	for n := range sized(1, 1, 20) {
		primary = f.fail(n, primary)
	}
	if wrong := pgtest.Query[int](t, primary.URL(), "SELECT count(*) FROM counters WHERE change > (SELECT number FROM change_number)"); wrong > 0 {
		t.Errorf("%d counters have numbers of changes that there are not", wrong)
	}
	t.Logf("%d hits", f.hits.Load())
}

// fail has the primary die, and returns the next one.
func (f *failover) fail(n int, primary *pgtest.Replica) (next *pgtest.Replica) {
	f.t.Helper()
	standby := primary.Replica()
	kept, base := int64(10_000*(n+1)), int64(10_000*(n+1)+1000)
	f.limit(kept)
	f.counts(kept)
	testkit.Eventually(f.t, "the standby has the last write", func() bool {
		return pgtest.Query[int64](f.t, standby.URL(), "SELECT number FROM change_number") == pgtest.Query[int64](f.t, primary.URL(),
			"SELECT number FROM change_number")
	})
	standby.Fall()
	for i := range int64(lostWrites) {
		f.limit(base + i)
	}
	f.counts(base + lostWrites - 1)
	f.judged(primary)
	logs := [2]string{f.nodes[0].log.String(), f.nodes[1].log.String()}
	primary.Crash()
	standby.Promote()
	f.proxy.to(addressOf(f.t, standby.URL()))
	began := time.Now()
	recovered := f.recovered(began)
	f.counts(kept)
	// Other writes draw the same numbers, and more. Rows that kept a lost number would be believed.
	for i := range int64(lostWrites + 2) {
		f.limit(base + 500 + i)
	}
	f.counts(base + 500 + lostWrites + 1)
	f.judged(standby) // so each customer was charged since, over whatever session
	settled, before := time.Now(), f.hits.Load()
	testkit.Eventually(f.t, "more hits", func() bool { return f.hits.Load() > before+failoverPace/2 })
	f.mu.Lock()
	defer f.mu.Unlock()
	late, last := 0, time.Duration(0)
	for _, failed := range f.failed {
		last = max(last, failed.sent.Sub(began))
		if !failed.sent.Before(recovered) {
			if late++; late <= 5 {
				f.t.Errorf("%s after all had recovered: %s", failed.sent.Sub(settled), failed.what)
			}
		}
	}
	testkit.AtMost(f.t, "the last hit that failed, sent after the promotion,", last, recovery)
	var all []string
	for i := range f.nodes {
		said := f.saidSince(i, logs[i])
		all = append(all, said...)
		if most := mostInAMinute(f.t, said); most > outageLines {
			f.t.Errorf("node %d logged %d lines in a minute:\n%s", i, most, strings.Join(said, ""))
		}
	}
	lines, kinds := len(all), kindsOf(all)
	f.t.Logf("failover %d: %d hits failed, %d of them later than %s; %d lines of %d kinds", n, len(f.failed), late, recovered.Sub(began), lines, kinds)
	if kinds > failoverLines || isLong() && lines > failoverLines {
		f.t.Errorf("%d lines of %d kinds were logged of one failover:\n%s", lines, kinds, strings.Join(all, ""))
	}
	for i, node := range f.nodes {
		// Later lines of one minute may be left out of the log.
		if said := strings.Count(node.log.String(), "the database went back"); said == 0 || said > n+1 {
			f.t.Errorf("node %d said %d times that the database went back, after %d times", i, said, n+1)
		}
		// No hit was charged as of a lost change, on whatever new session.
		a, err := send(f.client, request{http.MethodGet, "/metrics", "", ""}, "http://"+node.at)
		for _, want := range []string{"rows_went_back_total 0", fmt.Sprint("database_went_back_total ", n+1)} {
			if err != nil || !strings.Contains(string(a.raw), "\nquotad_"+want+"\n") {
				f.t.Errorf("node %d has no quotad_%s: %v\n%s", i, want, err, a.raw)
			}
		}
	}
	f.failed = nil
	return standby
}

// recovered waits until nodes must answer all hits again, and returns that instant.
func (f *failover) recovered(promoted time.Time) time.Time {
	f.t.Helper()
	if isLong() {
		time.Sleep(time.Until(promoted.Add(recovery)))
		return promoted.Add(recovery)
	}
	for i, node := range f.nodes {
		testkit.Eventually(f.t, fmt.Sprintf("node %d answers all customers", i), func() bool {
			for c := range failoverCustomers {
				a, err := send(f.client, failoverHit(c), "http://"+node.at)
				if err != nil || a.status >= http.StatusInternalServerError || a.Degraded {
					return false
				}
			}
			return true
		})
	}
	return time.Now()
}

func failoverHit(customer int) request {
	return request{http.MethodPost, "/v1/hits", fmt.Sprintf(`{"customer":%q,"meter":"calls","cost":1}`, keyOf(customer)), ""}
}

// saidSince are the lines that a node has logged since its log was before. It must not be longer than what is
// kept of it.
func (f *failover) saidSince(node int, before string) []string {
	f.t.Helper()
	more, ok := strings.CutPrefix(f.nodes[node].log.String(), before)
	if !ok {
		f.t.Fatalf("node %d logged more than is kept", node)
	}
	return slices.Collect(strings.Lines(more))
}

// write writes something by the first node, whatever is there. It is tried again while the node has no
// database.
func (f *failover) write(path, body string) {
	f.t.Helper()
	testkit.Eventually(f.t, "PUT "+path, func() bool {
		for _, condition := range []string{"If-None-Match", "If-Match"} {
			status, said := f.put(path, body, condition)
			switch {
			case status == http.StatusCreated || status == http.StatusOK:
				return true
			case status == 0 || status == http.StatusServiceUnavailable:
				return false
			case status != http.StatusPreconditionFailed:
				f.t.Fatalf("PUT %s: %d %s", path, status, said)
			}
		}
		return false
	})
}

// put writes something under a condition. The status is 0 when there is no answer.
func (f *failover) put(path, body, condition string) (status int, said string) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodPut, "http://"+f.nodes[0].at+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + adminKey}, "Content-Type": {"application/json"}}
	r.Header.Set(condition, "*")
	a, err := f.client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body)
	return a.StatusCode, string(text)
}

// limit has all customers have a limit.
func (f *failover) limit(units int64) {
	f.t.Helper()
	f.write("/v1/plans/basic", fmt.Sprintf(`{"name":"Basic","currency":"USD","interval":"month","base_price_minor":0,"prices":[],"apply_to":"all",
		"limits":[{"name":"hourly","meter":"calls","algorithm":"fixed_window","window":"1h","limit":%d}]}`, units))
}

// counts waits until both nodes go by a limit.
func (f *failover) counts(units int64) {
	f.t.Helper()
	for i, node := range f.nodes {
		what := fmt.Sprintf("node %d goes by a limit of %d", i, units)
		took := testkit.Eventually(f.t, what, func() bool {
			a, err := send(f.client, quotaOf(0, ""), "http://"+node.at)
			return err == nil && len(a.Limits) == 1 && a.Limits[0].Limit == units
		})
		if isLong() && took > recovery {
			f.t.Errorf("%s after %s", what, took)
		}
	}
}

// judged waits until every counter was judged by the newest change.
func (f *failover) judged(primary *pgtest.Replica) {
	f.t.Helper()
	testkit.Eventually(f.t, "all counters are judged by the newest change", func() bool {
		return pgtest.Query[int](f.t, primary.URL(), "SELECT count(*) FROM counters WHERE change = (SELECT number FROM change_number)") == failoverCustomers
	})
}

// call sends hits at the pace until the test stops it.
func (f *failover) call() {
	tick := time.NewTicker(time.Second / failoverPace)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-f.stop:
			return
		case <-tick.C:
		}
		f.callers.Go(func() {
			sent := time.Now()
			a, err := send(f.client, failoverHit(n%failoverCustomers), "http://"+f.nodes[n/failoverCustomers%2].at)
			f.hits.Add(1)
			if err == nil && a.status < http.StatusInternalServerError {
				return
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.failed = append(f.failed, failedHit{sent, fmt.Sprintf("%d %s %v", a.status, a.raw, err)})
		})
	}
}
