package faults

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

const (
	slowPace      = 150 // hits a second, half of them on a plan that denies in an outage
	slowCustomers = 20  // on each plan
	// slowWithin is --decide-within of the node, as it comes.
	slowWithin = time.Second
	// fewUnits is the limit of a customer whose hits come too fast in an outage.
	fewUnits = 5
)

// slowSizes are how long each way lasts in a long run, and what the check of it holds to. Otherwise each way
// lasts until the node knows of it and hits have been answered, and holds to no time.
type slowSizes struct {
	lasts     time.Duration
	settled   time.Duration // after the beginning: from then on nearly all are answered at once
	answered  time.Duration // no answer takes longer
	p99       time.Duration
	recovered time.Duration // after the end: from then on all hits are charged
}

// longSizes are those of a long run, which has the machine to itself.
var longSizes = slowSizes{
	lasts: 10 * time.Second, settled: 3 * time.Second, answered: 1200 * time.Millisecond, p99: 50 * time.Millisecond,
	recovered: time.Second,
}

const (
	// slowHits is how many hits must have been answered in each part of a way.
	slowHits = 60
	// slowTries is how many hits are answered at most until slowHits in a row heard what they are to hear.
	slowTries = 100 * slowHits
)

// slow is a node beside a database that becomes slow in one way after the other, and what its callers
// hear.
type slow struct {
	t      *testing.T
	server *pgtest.Instance
	proxy  *proxy
	node   *process
	client *http.Client
	faults int // so far
	stop   chan struct{}
	ended  sync.WaitGroup // the callers

	mu   sync.Mutex
	hits []slowHit
	open map[int]time.Time // when hits were sent that have no answer yet
}

// slowHit is a hit and its answer.
type slowHit struct {
	sent     time.Time
	took     time.Duration
	customer int // of 2 × slowCustomers
	deny     bool
	a        answer
	err      error
}

// slowWay is a way in which the database becomes slow, and is itself again.
type slowWay struct {
	what       string
	begin, end func()
	// passing: the database is only slow for the sessions that there are. Hits are soon charged again, on
	// others.
	passing bool
}

// TestSlowIsAnOutage: commits that wait for a standby, tables that are locked, a server that stands still
// and connections that go silent are outages. Each hit is answered, in a long run in time and most of them at once, and
// no unit is charged that nobody may have heard of.
func TestSlowIsAnOutage(t *testing.T) {
	binary := build(t)
	for name, ways := range map[string]func(*slow) []slowWay{
		"commits": func(s *slow) []slowWay {
			admin := func(sql string) func() {
				return func() { pgtest.Exec(s.t, s.server.AdminURL(), sql, "SELECT pg_reload_conf()") }
			}
			return []slowWay{
				{what: "commits wait for a standby", begin: admin("ALTER SYSTEM SET synchronous_standby_names = 'nobody'"), end: func() {
					s.fewWait()
					admin("ALTER SYSTEM RESET synchronous_standby_names")()
				}},
				s.locked("counters", "counters"),
				s.locked("ids", "receipts_1"),
			}
		},
		"answers": func(s *slow) []slowWay {
			return []slowWay{
				{what: "the server stands still", begin: func() { s.signal(syscall.SIGSTOP) }, end: func() { s.signal(syscall.SIGCONT) }},
				{what: "connections go silent", begin: func() { s.proxy.silence(true) }, end: func() { s.proxy.silence(false) }},
				{what: "old connections go silent", begin: func() { s.proxy.silence(true); s.proxy.silence(false) }, end: func() {}, passing: true},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSlow(t, binary)
			for _, w := range ways(s) {
				s.beside(w)
			}
			s.settle()
		})
	}
}

// newSlow starts a node, and sends hits to it.
func newSlow(t *testing.T, binary string) *slow {
	s := &slow{t: t, server: pgtest.Server(t), client: newHTTPClient(), stop: make(chan struct{}), open: make(map[int]time.Time)}
	t.Cleanup(s.client.CloseIdleConnections)
	s.proxy = newProxy(t, addressOf(t, s.server.URL()), toPostgres, newDice(testkit.Seed(t), 0, 0))
	s.node = launch(t, binary, throughProxy(t, s.server.URL(), s.proxy))
	s.setUp()
	s.others("at first", false)
	s.ended.Go(s.call)
	t.Cleanup(s.rest)
	testkit.Eventually(t, "hits are charged", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.hits) > slowPace/2
	})
	return s
}

// rest has the callers stop, and waits until all are answered.
func (s *slow) rest() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.ended.Wait()
}

// setUp makes two plans, which differ by what they say of outages, and one with a small limit.
func (s *slow) setUp() {
	write := func(path, body string) {
		write(s.t, s.client, request{http.MethodPut, path, body, ""}, "http://"+s.node.at)
	}
	write("/v1/meters/calls", `{"unit":"call"}`)
	for name, limit := range map[string]string{
		"allow": `1000000,"on_outage":"allow"`, "deny": `1000000,"on_outage":"deny"`, "few": strconv.Itoa(fewUnits),
	} {
		write("/v1/plans/"+name, `{"name":"P","currency":"USD","interval":"month","base_price_minor":0,"prices":[],
			"limits":[{"name":"daily","meter":"calls","algorithm":"fixed_window","window":"1d","limit":`+limit+`}]}`)
		for c := range slowCustomers {
			write(fmt.Sprintf("/v1/customers/%s-%d", name, c), `{"name":"C","plan":"`+name+`","timezone":"UTC"}`)
		}
	}
	write("/v1/customers/other", `{"name":"C","plan":"allow","timezone":"UTC"}`)
	for c := range slowCustomers { // the node knows their rows
		testkit.Eventually(s.t, "a hit is charged", func() bool {
			a, err := s.few(c)
			return err == nil && a.status == http.StatusOK && !a.Degraded
		})
	}
}

// call sends hits at the pace until stop.
func (s *slow) call() {
	tick := time.NewTicker(time.Second / slowPace)
	defer tick.Stop()
	var callers sync.WaitGroup
	defer callers.Wait()
	for n := 0; ; n++ {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		callers.Go(func() { s.hit(n) })
	}
}

// hit sends one: on each plan in turn, every tenth with an id.
func (s *slow) hit(n int) {
	h := slowHit{sent: time.Now(), customer: n % (2 * slowCustomers), deny: n%2 == 1}
	plan := "allow"
	if h.deny {
		plan = "deny"
	}
	id := ""
	if n%10 < 2 {
		id = fmt.Sprintf(`,"id":"slow-%d"`, n)
	}
	body := fmt.Sprintf(`{"customer":"%s-%d","meter":"calls"%s}`, plan, n/2%slowCustomers, id)
	s.mu.Lock()
	s.open[n] = h.sent
	s.mu.Unlock()
	h.a, h.err = send(s.client, request{http.MethodPost, "/v1/hits", body, ""}, "http://"+s.node.at)
	h.took = time.Since(h.sent)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hits = append(s.hits, h)
	delete(s.open, n)
}

// locked is a table that is locked, as a migration or a dump may.
func (s *slow) locked(what, table string) slowWay {
	var conn *pgx.Conn
	return slowWay{what: what + " are locked", begin: func() {
		var err error
		if conn, err = postgres.Connect(context.Background(), s.server.URL(), nil); err == nil {
			_, err = conn.Exec(context.Background(), "BEGIN; LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}, end: func() {
		if err := conn.Close(context.Background()); err != nil {
			s.t.Error(err)
		}
	}}
}

// fewWait: what asks whether the database commits again keeps no sessions that wait for it.
func (s *slow) fewWait() {
	const most = 6 // of a lane, a worker, a probe, and what else the node writes
	n := 0
	testkit.Eventually(s.t, "a session waits for a standby", func() bool { // there may be none between two probes
		n = pgtest.Query[int](s.t, s.server.AdminURL(), "SELECT count(*)::int FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
		return n > 0
	})
	if n > most {
		s.t.Errorf("%d sessions wait for a standby", n)
	}
}

// signal sends a signal to all processes of the server.
func (s *slow) signal(what syscall.Signal) {
	postmaster := s.server.Embedded().PID()
	all := []int{postmaster}
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		s.t.Fatal(err)
	}
	if what == syscall.SIGSTOP { // or it makes more
		_ = syscall.Kill(postmaster, what)
	}
	for _, entry := range entries {
		stat, _ := os.ReadFile(entry) // one that has ended is none of them
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(entry)))
		if len(fields) > 1 && fields[1] == strconv.Itoa(postmaster) {
			all = append(all, pid)
		}
	}
	for _, pid := range all {
		_ = syscall.Kill(pid, what)
	}
}

// steady waits until so many hits in a row that were sent after an instant heard what they are to hear. It fails
// the test when too many were answered without.
func (s *slow) steady(after time.Time, wants func(*slowHit) string) {
	s.t.Helper()
	s.mu.Lock()
	before := len(s.hits)
	s.mu.Unlock()
	testkit.Eventually(s.t, "hits hear what they are to hear, one after the other", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		last := s.hits[max(0, len(s.hits)-slowHits):]
		if len(last) == slowHits && !slices.ContainsFunc(last, func(h slowHit) bool { return !h.sent.After(after) || h.outcome() != wants(&h) }) {
			return true
		}
		if len(s.hits)-before > slowTries {
			heard := map[string]int{}
			for _, h := range s.hits[before:] {
				if h.outcome() != wants(&h) {
					heard[fmt.Sprintf("%s instead of %s", h.outcome(), wants(&h))]++
				}
			}
			s.t.Fatalf("of %d hits no %d in a row heard what they are to hear: %v", len(s.hits)-before, slowHits, heard)
		}
		return false
	})
}

// charged waits until a hit of each customer that was sent after an instant was charged. So each lane has
// charged since, and each of those who charge hits with ids.
func (s *slow) charged(after time.Time) {
	s.t.Helper()
	testkit.Eventually(s.t, "hits of all customers are charged", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		all := map[int]bool{}
		for i := range s.hits {
			if h := &s.hits[i]; h.sent.After(after) && h.outcome() == charged {
				all[h.customer] = true
			}
		}
		return len(all) == 2*slowCustomers
	})
}

// known waits until the node knows that the database is slow, and in a long run for as long as that may
// take. It returns that instant. Hits that are sent from then on are not charged, or are again.
func (s *slow) known(w *slowWay, began time.Time) time.Time {
	s.t.Helper()
	if isLong() {
		time.Sleep(time.Until(began.Add(longSizes.settled)))
		return began.Add(longSizes.settled)
	}
	if w.passing {
		s.charged(began)
	} else {
		testkit.Eventually(s.t, w.what+": the node says so", s.saysDegraded)
	}
	return time.Now()
}

// charges waits until hits are charged again, and in a long run for as long as that may take. It returns
// that instant.
func (s *slow) charges(ended time.Time) time.Time {
	s.t.Helper()
	if isLong() {
		time.Sleep(time.Until(ended.Add(longSizes.recovered + 400*time.Millisecond)))
		return ended.Add(longSizes.recovered)
	}
	s.charged(ended)
	return time.Now()
}

// beside makes the database slow for a while, and looks at what callers heard meanwhile and afterwards.
func (s *slow) beside(w slowWay) {
	s.t.Helper()
	before := s.node.log.String()
	w.begin()
	began := time.Now()
	known := s.known(&w, began)
	if !w.passing {
		s.others(w.what, true)
		s.degraded(w.what)
		s.exceed(w.what)
	}
	s.steady(known, w.wants)
	if isLong() {
		time.Sleep(time.Until(began.Add(longSizes.lasts)))
	}
	ending := time.Now()
	w.end()
	ended := time.Now()
	recovered := s.charges(ended)
	s.steady(recovered, func(*slowHit) string { return charged })
	late := time.Now()
	testkit.Eventually(s.t, "all are answered", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !slices.ContainsFunc(slices.Collect(maps.Values(s.open)), late.After)
	})
	at := slowTimes{began, known, ending, ended, recovered, late}
	s.logged(&w, before, at)
	s.judge(&w, at)
}
