package faults

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

const (
	// soakRate is how many operations a second come.
	soakRate = 150
	// soakWorkers is how many of them are under way at most.
	soakWorkers = 16
	// soakCustomers is how many customers there are.
	soakCustomers = 200
	// soakIntervals is how many rows the short form prints, each of so many answers.
	soakIntervals, soakAnswers = 12, soakRate / 2
)

// soakPlan has what comes and goes: buckets of values that nobody sends again, and
// reservations that nobody settles. The Cleaner and their TTL take them away.
const soakPlan = `{"name":"Soak","currency":"USD","interval":"month","base_price_minor":0,"prices":[],"limits":[
	{"name":"minute","meter":"calls","algorithm":"fixed_window","limit":40,"window":"1m"},
	{"name":"value","meter":"calls","algorithm":"token_bucket","limit":5,"window":"10s","per":"region"},
	{"name":"running","meter":"jobs","algorithm":"concurrency","limit":50,"ttl":"10s"}]}`

// soaking is a node under a steady load, and what was seen of the answers since the last row.
type soaking struct {
	t      testing.TB
	node   *process
	client *http.Client
	look   *pgx.Conn
	values atomic.Int64 // of the attribute, so far

	mu    sync.Mutex
	waits []time.Duration
	wrong string // an answer that must not come
}

// TestSoak: operations of all kinds come at a steady rate, and the last third of the rows shows
// no growth of memory, goroutines, descriptors, tables or latency. QUOTAD_TEST_SOAK is how many
// minutes it takes, one row a minute; without, it is the short form.
func TestSoak(t *testing.T) {
	rows, every, long := soakIntervals, time.Duration(0), false
	if given := os.Getenv("QUOTAD_TEST_SOAK"); given != "" {
		minutes, err := strconv.Atoi(given)
		if err != nil || minutes < 6 || minutes > 7*24*60 {
			t.Fatalf("QUOTAD_TEST_SOAK is %q; it takes minutes, 6 to 10080", given)
		}
		rows, every, long = minutes, time.Minute, true
	}
	databaseURL := pgtest.NewDatabase(t)
	s := &soaking{t: t, node: launch(t, build(t), databaseURL, steady...), client: newHTTPClient()}
	t.Cleanup(s.client.CloseIdleConnections)
	var err error
	if s.look, err = postgres.Connect(testkit.Context(t), databaseURL, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.look.Close(testkit.Context(t)) })
	s.setUp()

	work, end := make(chan struct{}), make(chan struct{})
	var working sync.WaitGroup
	seed := testkit.Seed(t)
	for i := range soakWorkers {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		working.Go(func() {
			for range work {
				s.operate(random)
			}
		})
	}
	working.Go(func() { steadily(soakRate, work, end) })
	stop := sync.OnceFunc(func() { close(end); working.Wait() })
	t.Cleanup(stop)

	series := make([][]float64, len(soakMeasures))
	for row := range rows {
		s.await(every)
		line := fmt.Sprintf("row %d:", row+1)
		for i, value := range s.measure() {
			series[i] = append(series[i], value)
			line += fmt.Sprintf(" %s %.1f,", soakMeasures[i].name, value)
		}
		t.Log(strings.TrimSuffix(line, ","))
	}
	stop()
	for i, m := range soakMeasures {
		floor := m.short
		if long {
			floor = m.long
		} else if floor == 0 {
			continue
		}
		if what := grows(series[i], m.share, floor); what != "" {
			t.Errorf("%s: %s", m.name, what)
		}
	}
	if s.wrong != "" {
		t.Error(s.wrong)
	}
}

// soakMeasures are the columns. A column grows when it passes its share and a floor. In the short
// form a node is still getting warm, and other tests run beside it: a column without a floor is not held
// to anything there.
var soakMeasures = []struct {
	name               string
	share, long, short float64
}{
	{"memory MB", 0.1, 4, 32}, {"goroutines", 0.05, 8, 64}, {"descriptors", 0.05, 8, 64}, {"tables MB", 0.1, 2, 16}, {"p99 ms", 0.5, 10, 0},
}

// grows says how far the last third of a series is above the third before it, by their
// medians; empty: by no more than a share of it and a floor.
func grows(series []float64, share, floor float64) string {
	third := len(series) / 3
	before, last := median(series[third:2*third]), median(series[len(series)-third:])
	if last <= before*(1+share)+floor {
		return ""
	}
	return fmt.Sprintf("it grew from %.1f in the second third to %.1f in the last", before, last)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// TestSoakSeesGrowth: a leak is seen, and noise is not.
func TestSoakSeesGrowth(t *testing.T) {
	series := func(of func(i int) float64) (s []float64) {
		for i := range 30 {
			s = append(s, of(i))
		}
		return s
	}
	leak := series(func(i int) float64 { return 60 + 1.5*float64(i) })
	noise := series(func(i int) float64 { return 60 + float64(i%7) })
	warm := series(func(i int) float64 { return min(60, 20+8*float64(i)) })
	if grows(leak, 0.1, 4) == "" {
		t.Error("a leak of 1.5 a row is not seen")
	}
	if what := grows(noise, 0.1, 4); what != "" {
		t.Error("noise:", what)
	}
	if what := grows(warm, 0.1, 4); what != "" {
		t.Error("a node that becomes warm:", what)
	}
}

// steadily hands out work, so many a second, until it is to end. What nobody takes is left out.
func steadily(rate int, work chan<- struct{}, end <-chan struct{}) {
	defer close(work)
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for {
		select {
		case <-end:
			return
		case <-tick.C:
		}
		select {
		case work <- struct{}{}:
		default:
		}
	}
}

func (s *soaking) setUp() {
	s.t.Helper()
	put := func(path, body string) {
		s.t.Helper()
		write(s.t, s.client, request{http.MethodPut, path, body, ""}, "http://"+s.node.at)
	}
	put("/v1/meters/calls", `{"unit":"call"}`)
	put("/v1/meters/jobs", `{"unit":"job"}`)
	put("/v1/plans/soak", soakPlan)
	for c := range soakCustomers {
		put("/v1/customers/"+keyOf(c), `{"name":"C","plan":"soak","timezone":"UTC"}`)
	}
}

// operate does one operation: of ten, five are hits, one of them of a new value; two have an id;
// two reserve, and one of these commits; one reads.
func (s *soaking) operate(random *rand.Rand) {
	customer := random.IntN(soakCustomers)
	h := charge{place: place{customer, "calls", regions[random.IntN(len(regions))]}, cost: 1}
	switch n := random.IntN(10); {
	case n == 0:
		h.region = fmt.Sprintf("value-%d", s.values.Add(1))
		s.ask(request{http.MethodPost, "/v1/hits", h.body(), ""})
	case n < 5:
		s.ask(request{http.MethodPost, "/v1/hits", h.body(), ""})
	case n < 7:
		h.id = fmt.Sprintf("soak-%d", random.Uint64())
		s.ask(request{http.MethodPost, "/v1/hits", h.body(), ""})
	case n < 9:
		id := fmt.Sprintf("held-%d", random.Uint64())
		a := s.ask(request{
			http.MethodPost, "/v1/reservations",
			fmt.Sprintf(`{"id":%q,"customer":%q,"meter":"jobs","cost":1,"ttl_ms":10000}`, id, keyOf(customer)), "",
		})
		if n == 7 && a.admitted() {
			s.ask(request{http.MethodPost, "/v1/reservations/" + a.ID + "/commit", `{"cost":1}`, ""})
		}
	default:
		s.ask(quotaOf(customer, ""))
	}
}

// ask sends a request, and notes how long it took and an answer that must not come.
func (s *soaking) ask(r request) answer {
	began := time.Now()
	a, err := send(s.client, r, "http://"+s.node.at)
	took := time.Since(began)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits = append(s.waits, took)
	if err != nil || a.status/100 != 2 && a.status != http.StatusTooManyRequests {
		s.wrong = fmt.Sprintf("%s %s %s: %d %s %v", r.method, r.path, r.body, a.status, a.raw, err)
	}
	return a
}

// await waits until a row is to be printed: after a time, or after some answers.
func (s *soaking) await(every time.Duration) {
	s.t.Helper()
	time.Sleep(every)
	testkit.Eventually(s.t, "the next row", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.waits) >= soakAnswers
	})
}

// measure is one row, in the order of soakMeasures.
func (s *soaking) measure() []float64 {
	s.t.Helper()
	a, err := send(s.client, request{http.MethodGet, "/metrics", "", ""}, "http://"+s.node.at)
	if err != nil || a.status != http.StatusOK {
		s.t.Fatalf("GET /metrics: %d %v", a.status, err)
	}
	found := make(map[string]float64)
	for lines := bufio.NewScanner(strings.NewReader(string(a.raw))); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		found[name], _ = strconv.ParseFloat(value, 64) // of comments, nothing is asked
	}
	for _, name := range []string{"process_resident_memory_bytes", "go_goroutines", "process_open_fds"} {
		if found[name] == 0 {
			s.t.Fatalf("/metrics has no %s", name)
		}
	}
	// What an id or an hour takes stays for as long as it is kept. Here it is what comes and goes.
	var tables int64
	err = s.look.QueryRow(testkit.Context(s.t), "SELECT pg_total_relation_size('counters') + pg_total_relation_size('holds')").Scan(&tables)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.waits)
	p99 := s.waits[len(s.waits)*99/100]
	s.waits = s.waits[:0]
	return []float64{
		found["process_resident_memory_bytes"] / 1e6, found["go_goroutines"], found["process_open_fds"],
		float64(tables) / 1e6, float64(p99.Microseconds()) / 1e3,
	}
}
