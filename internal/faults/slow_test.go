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
var longSizes = slowSizes{lasts: 10 * time.Second, settled: 3 * time.Second, answered: 1200 * time.Millisecond, p99: 50 * time.Millisecond, recovered: time.Second}

// slowHits is how many hits must have been answered in each part of a way.
const slowHits = 60

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
	sent time.Time
	took time.Duration
	deny bool
	a    answer
	err  error
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
	h := slowHit{sent: time.Now(), deny: n%2 == 1}
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
	if n := pgtest.Query[int](s.t, s.server.AdminURL(), "SELECT count(*)::int FROM pg_stat_activity WHERE wait_event = 'SyncRep'"); n == 0 || n > most {
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

// answered waits until so many hits were sent after an instant and heard something.
func (s *slow) answered(after time.Time, what string) {
	s.t.Helper()
	testkit.Eventually(s.t, "hits hear: "+what, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for i := len(s.hits) - 1; i >= 0 && n < slowHits; i-- {
			if h := &s.hits[i]; h.sent.After(after) && (what == anything || h.outcome() == what) {
				n++
			}
		}
		return n == slowHits
	})
}

const anything = "anything"

// known waits until the node knows that the database is slow, and in a long run for as long as that may
// take. It returns that instant. Hits that are sent from then on are not charged, or are again.
func (s *slow) known(w *slowWay, began time.Time) time.Time {
	s.t.Helper()
	if isLong() {
		time.Sleep(time.Until(began.Add(longSizes.settled)))
		return began.Add(longSizes.settled)
	}
	if w.passing {
		s.answered(began, "charged")
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
	s.answered(ended, "charged")
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
	s.answered(known, anything)
	if isLong() {
		time.Sleep(time.Until(began.Add(longSizes.lasts)))
	}
	ending := time.Now()
	w.end()
	ended := time.Now()
	recovered := s.charges(ended)
	late := time.Now()
	testkit.Eventually(s.t, "all are answered", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !slices.ContainsFunc(slices.Collect(maps.Values(s.open)), late.After)
	})
	s.logged(&w, before)
	s.judge(&w, slowTimes{began, known, ending, ended, recovered, late})
}

// logged: the log says once that it begins, and once that it ends.
func (s *slow) logged(w *slowWay, before string) {
	s.t.Helper()
	first := s.faults == 1 && !w.passing
	count := func() (opened, closed int) {
		return s.said(before, "the database is too slow"), s.said(before, "the database commits in time again")
	}
	if first {
		testkit.Eventually(s.t, w.what+": the log says so", func() bool { opened, closed := count(); return opened > 0 && closed > 0 })
	}
	// The log has a budget: of what comes again within a minute it may have no line.
	most := 1
	if w.passing {
		most = 0
	}
	// A machine that stalls makes it slow once more.
	if opened, closed := count(); isLong() && (opened > most || closed > most) {
		s.t.Errorf("%s: the log says %d times that it begins, and %d times that it ends", w.what, opened, closed)
	}
}

// slowTimes are when a way began, was known, was about to end, had ended, was known to have, and when it
// was judged.
type slowTimes struct{ began, known, ending, ended, recovered, late time.Time }

// judge holds what callers heard against what they are to hear.
func (s *slow) judge(w *slowWay, at slowTimes) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var settled []time.Duration // how long those took that were sent once the node knew
	told := map[string]int{}
	longest, wrong := time.Duration(0), 0
	for _, h := range s.hits {
		switch {
		case h.sent.Before(at.began) || h.sent.After(at.late):
		case h.sent.Before(at.ended):
			longest = max(longest, h.took)
			if h.sent.Before(at.known) {
				told["early "+h.outcome()]++
				continue
			}
			if h.sent.After(at.ending) || !isLong() && !h.sent.Add(h.took).Before(at.ending) {
				continue // it ended before or after that
			}
			settled = append(settled, h.took)
			told[h.outcome()]++
			if h.outcome() != w.wants(&h) && (isLong() || !w.passing) {
				wrong++
			}
		case h.sent.After(at.recovered):
			if isLong() && h.outcome() != "charged" {
				s.t.Errorf("%s: %s after the end: %s, %s %v", w.what, h.sent.Sub(at.ended), h.outcome(), h.a.raw, h.err)
			}
		default:
			told["after "+h.outcome()]++
			longest = max(longest, h.took)
		}
	}
	slices.Sort(settled)
	p99 := settled[len(settled)*99/100]
	s.t.Logf("%s: slowest %s, p99 from %s on %s, %v", w.what, longest.Round(time.Millisecond), at.known.Sub(at.began), p99.Round(time.Microsecond), told)
	if isLong() && longest > longSizes.answered {
		s.t.Errorf("%s: an answer took %s", w.what, longest)
	}
	if wrong > 0 {
		s.t.Errorf("%s: %d of %d hits heard something else: %v", w.what, wrong, len(settled), told)
	}
	if isLong() && p99 > longSizes.p99 {
		s.t.Errorf("%s: p99 is %s", w.what, p99)
	}
}
