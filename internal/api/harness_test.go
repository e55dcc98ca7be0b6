package api

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/api/serve"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/closing"
	"quotad/internal/billing/invoices"
	"quotad/internal/billing/reconcile"
	"quotad/internal/events"
	"quotad/internal/fastpath"
	"quotad/internal/plans"
	"quotad/internal/plans/catalog"
	"quotad/internal/plans/store"
	"quotad/internal/plans/sweep"
	"quotad/internal/postgres"
	"quotad/internal/quota"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/described"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/webhooks"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const adminSecret = "test-admin-0123456789abcdef0123456789abcdef"

// A node is a whole server on a database of its own, without the wiring of cmd/quotad.
type node struct {
	t        testing.TB
	server   *Server
	store    *store.Store
	url      string
	client   *http.Client
	database string // its URL
	doc      *openapi3.T
	bodies   *described.Document
	state    serve.State
	reason   string
	ahead    *atomic.Int64 // see leap

	customer, testClock string // whom the helpers of billing and scheduled changes mean: acme, on clock
}

func newNode(t testing.TB) *node { return newNodeOn(t, pgtest.NewDatabase(t)) }

func newNodeOn(t testing.TB, databaseURL string, change ...func(*quota.Options)) *node {
	t.Helper()
	ctx := testkit.Context(t)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	patientURL := pgtest.Patiently(databaseURL)
	pool, err := postgres.Open(ctx, patientURL, postgres.PoolOptions{StatementTimeout: testkit.Patience, Params: patientPool})
	check(t, err)
	t.Cleanup(pool.Close)
	clock := postgres.NewClock(patientURL, log)
	clock.Within = testkit.Patience
	t.Cleanup(clock.Close)
	ahead := aheadOf(databaseURL)
	now := patientNow(clock, ahead)
	estimate := func() (us int64, ok bool) {
		us, ok = clock.Estimate()
		return us + ahead.Load(), ok
	}
	start := time.Now()
	stopwatch := func() time.Duration { return time.Since(start) }
	hooks := accounts.NewHooks(now, 10*time.Second)
	catalog := catalog.New(pool, catalog.Options{
		Monotonic: stopwatch, Now: now, Caps: hooks.CapPeriods, Within: testkit.Patience, Freshness: testkit.Patience, Log: log,
	})
	store := store.New(pool, store.Options{
		Committed: catalog.Committed, Billing: hooks.Billing(), Within: testkit.Patience,
		Steady: func(_ context.Context, us int64) int64 { return us + ahead.Load() },
	})
	background, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- catalog.Run(background) }()
	sweeper := sweep.NewSweeper(store, now, log)
	var sweeping sync.WaitGroup
	sweeping.Go(func() { sweeper.Run(background) })
	numberer := events.NewNumberer(pool, events.MinRetention, log)
	numberer.Within = testkit.Patience
	sweeping.Go(func() { numberer.Run(background) })
	hooked := webhooks.New(pool, true)
	sender := webhooks.NewSender(hooked, now, log)
	sweeping.Go(func() { sender.Run(background) })
	options := quota.Options{
		Connect: func(ctx context.Context) (*pgx.Conn, error) {
			return postgres.Connect(ctx, patientURL, patientSettings)
		},
		Confirm: catalog.Confirm, History: catalog.History,
		Pool: pool, Now: now, Wall: time.Now, Stopwatch: stopwatch, Patience: testkit.Patience, Returns: catalog.Returns, MemoryUsable: catalog.Fresh, Log: log,
		AlsoAdjusted: invoices.OpenAdjustments,
	}
	for _, f := range change {
		f(&options)
	}
	engine, err := quota.NewEngine(options)
	check(t, err)
	edits := sweep.NewThresholds(sweep.ThresholdsOptions{
		Store: store, Now: now, CatchUp: catalog.CatchUp, Targets: catalog.CappedTargets, Notify: engine.Notify, Log: log,
	})
	sweeping.Go(func() { edits.Run(background) })
	accounts := accounts.New(store, hooks)
	invoices := invoices.New(accounts, time.Hour)
	bills := closing.New(closing.Options{
		Pool: pool, Accounts: accounts, Invoices: invoices, Catalog: catalog, Engine: engine, Stopwatch: stopwatch, Log: log,
		FenceTime: testkit.Patience,
	})
	var billing sync.WaitGroup
	billing.Go(func() { bills.Run(background) })
	t.Cleanup(func() {
		_ = engine.Close(testkit.Bounded(t)) // some tests take its database away
		cancel()
		sweeping.Wait()
		billing.Wait()
		check(t, <-ended)
	})
	check(t, store.EnsureKey(ctx, adminSecret, "test", plans.ScopeAdmin))
	n := &node{t: t, store: store, state: serve.StateReady, database: databaseURL, ahead: ahead, customer: "acme", testClock: "clock"}
	n.server = New(Options{Webhooks: hooked, Sender: sender, Reconciler: reconcile.New(reconcile.Options{
		Pool: pool, Stopwatch: stopwatch,
		Page: testkit.Patience,
	}), Options: serve.Options{
		Engine: engine, Catalog: catalog, Store: store, Accounts: accounts, Invoices: invoices, Closing: bills,
		Ready: func() (serve.State, string) { return n.state, n.reason },
		Now:   now, Estimate: estimate, Wall: time.Now, Registry: prometheus.NewRegistry(), Log: log,
		Deadline: testkit.Patience, // a stall of the machine is none of quotad
	}})
	n.server.imports.Wait = testkit.Patience
	web := httptest.NewUnstartedServer(nil)
	web.Config = newPatientServer(n.server.Handler()).Server
	web.Listener = fastpath.Listener(web.Listener)
	web.Start()
	t.Cleanup(web.Close)
	n.url, n.client = web.URL, http.DefaultClient
	n.doc, err = openAPI()
	check(t, err)
	n.bodies, err = describedBodies()
	check(t, err)
	return n
}

// hasty is the same node by a server that lets no request wait for longer than a deadline.
func (n *node) hasty(deadline time.Duration) *node {
	n.t.Helper()
	parts := n.server.Options
	parts.Deadline, parts.Registry = deadline, prometheus.NewRegistry()
	other := *n
	other.server = New(Options{Options: parts})
	web := httptest.NewServer(other.server.Handler())
	n.t.Cleanup(web.Close)
	other.url = web.URL
	return &other
}

// patientPool and patientSettings are those of sessions that wait for their node, and for locks, as long
// as a test does.
var (
	patientPool     = map[string]string{"idle_in_transaction_session_timeout": strconv.FormatInt(testkit.Patience.Milliseconds(), 10)}
	patientSettings = func() map[string]string {
		settings := maps.Clone(session.SessionSettings)
		maps.Copy(settings, patientPool)
		settings["lock_timeout"] = patientPool["idle_in_transaction_session_timeout"]
		return settings
	}()
)

// patientNow is a clock's Now that asks the database again where its answer came too late to be exact.
// The nodes' clocks may be ahead of it, see leap.
func patientNow(clock *postgres.Clock, ahead *atomic.Int64) func(context.Context) (int64, error) {
	return func(ctx context.Context) (us int64, err error) {
		for {
			us, err = clock.Now(ctx)
			_, away := errors.AsType[*pgconn.ConnectError](err)
			if !errors.Is(err, postgres.ErrClockUnsure) || away && !errors.Is(err, context.DeadlineExceeded) || !postgres.Sleep(ctx, 10*time.Millisecond) {
				return us + ahead.Load(), err
			}
		}
	}
}

// aheads has by how many µs the clocks of all nodes on a database are ahead of it, by its URL.
var aheads sync.Map

func aheadOf(databaseURL string) *atomic.Int64 {
	all, _ := aheads.LoadOrStore(databaseURL, new(atomic.Int64))
	return all.(*atomic.Int64)
}

// leap sets the clocks of all nodes on the database to an instant, if that is yet to come: a test that
// waited for it would have to be done by then with what comes before it.
func (n *node) leap(to time.Time) {
	n.t.Helper()
	us, ok := n.server.Estimate() // in an outage, too
	if !ok {
		var err error
		us, err = n.server.Now(testkit.Context(n.t))
		check(n.t, err)
	}
	n.ahead.Add(max(0, to.UnixMicro()-us))
}

// nowOf is the time by the database and the nodes on it.
func (n *node) nowOf() (now time.Time) {
	n.t.Helper()
	check(n.t, n.store.Pool().QueryRow(testkit.Context(n.t), `SELECT clock_timestamp()`).Scan(&now))
	return now.Add(time.Duration(n.ahead.Load()) * time.Microsecond)
}

// inexact is how well nodes know the database's clock, and so each other's.
const inexact = 100 * time.Millisecond

// heeds asks a node until it answers by what another node has written. It has to from when it has heard
// of that on. That takes a second at most, which the long tests claim.
func (n *node) heeds(what string, writer *node, answered func() bool) {
	n.t.Helper()
	change := writer.server.Catalog.Applied()
	took := testkit.Eventually(n.t, what, func() bool {
		heard := n.server.Catalog.Applied() >= change
		is := answered()
		if !is && heard {
			n.t.Fatalf("the node has heard of it, and this is not so: %s", what)
		}
		return is
	})
	testkit.AtMost(n.t, what, took, time.Second)
}

// newPatientServer is NewHTTPServer for clients on a slow machine.
func newPatientServer(handler http.Handler) *fastpath.Server {
	s := NewHTTPServer(handler, time.Now)
	s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout = testkit.Patience, testkit.Patience, testkit.Patience, testkit.Patience
	s.HTTP2.WriteByteTimeout = testkit.Patience
	return s
}

// openAPI is the document that all nodes serve. It takes a while to be read.
var openAPI = sync.OnceValues(func() (*openapi3.T, error) { return openapi3.NewLoader().LoadFromData(OpenAPI("dev")) })

var describedBodies = sync.OnceValues(func() (*described.Document, error) { return described.New(OpenAPI("dev")) })

// A reply is an answer that was held against the OpenAPI document.
type reply struct {
	status int
	header http.Header
	text   string
	json   map[string]any
}

// do sends a request with the admin key, unless headers say otherwise ("-" leaves one out).
func (n *node) do(method, path, body string, headers ...string) reply {
	n.t.Helper()
	r, err := http.NewRequestWithContext(testkit.Context(n.t), method, n.url+path, strings.NewReader(body))
	check(n.t, err)
	r.Header.Set("Authorization", "Bearer "+adminSecret)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "-" {
			r.Header.Del(headers[i])
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return n.send(r)
}

func (n *node) send(r *http.Request) reply {
	n.t.Helper()
	response, err := n.client.Do(r)
	check(n.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	check(n.t, err)
	got := reply{status: response.StatusCode, header: response.Header, text: string(text)}
	media, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	if r.Method == "HEAD" || r.URL.Path == "/openapi.json" {
		return got
	}
	if strings.HasSuffix(media, "json") {
		check(n.t, json.Unmarshal(text, &got.json))
	}
	n.hold(response.Request, media, got)
	return got
}

// hold holds an answer against the served document: known status, known headers, and of JSON a known media type,
// and a body that its closed schema admits.
func (n *node) hold(r *http.Request, media string, got reply) {
	n.t.Helper()
	op, path := n.operation(r)
	if op == nil {
		if got.json != nil && got.status != http.StatusNotFound && got.status != http.StatusMethodNotAllowed {
			n.t.Errorf("%s %s: %d from no route: %s", r.Method, r.URL.Path, got.status, got.text)
		}
		return
	}
	response := op.Responses.Status(got.status)
	if response == nil {
		n.t.Errorf("%s %s: status %d is not documented: %s", r.Method, r.URL.Path, got.status, got.text)
		return
	}
	n.holdHeaders(op, response.Value, got)
	if got.json == nil {
		return
	}
	n.holdType(op, got)
	content := response.Value.Content[media]
	if content == nil {
		n.t.Errorf("%s %s: %d with %s is not documented", r.Method, r.URL.Path, got.status, media)
		return
	}
	if err := n.bodies.Body(path, r.Method, strconv.Itoa(got.status), media, []byte(got.text)); err != nil {
		n.t.Errorf("%s %s: %d is not as documented: %v\n%s", r.Method, r.URL.Path, got.status, err, got.text)
	}
}

// operation finds the documented operation of a request, and its path.
func (n *node) operation(r *http.Request) (found *openapi3.Operation, path string) {
	have := strings.Split(r.URL.EscapedPath(), "/")
	for pattern, want := range pathSteps() {
		item, same := n.doc.Paths.Value(pattern), len(want) == len(have)
		for i := 0; same && i < len(want); i++ {
			_, ending, _ := strings.Cut(want[i], "}")
			same = want[i] == have[i] || strings.HasPrefix(want[i], "{") && have[i] != "" && strings.HasSuffix(have[i], ending)
		}
		if op := item.GetOperation(r.Method); same && op != nil && len(pattern) > len(path) { // {id}.pdf before {id}
			found, path = op, pattern
		}
	}
	return found, path
}

// pathSteps returns the steps of each path of the document.
var pathSteps = sync.OnceValue(func() map[string][]string {
	all := make(map[string][]string)
	if doc, err := openAPI(); err == nil {
		for _, pattern := range doc.Paths.Keys() {
			all[pattern] = strings.Split(pattern, "/")
		}
	}
	return all
})

// want fails unless the reply has this status, and returns it.
func (n *node) want(status int, method, path, body string, headers ...string) reply {
	n.t.Helper()
	got := n.do(method, path, body, headers...)
	if got.status != status {
		n.t.Fatalf("%s %s %s: status %d, want %d: %s", method, path, body, got.status, status, got.text)
	}
	return got
}

// faultOf sends a request that is wrong, and returns its status and the fields at fault.
func (n *node) faultOf(method, path, body string) string {
	n.t.Helper()
	got := n.do(method, path, body, "Content-Type", "application/json")
	fields := []string{}
	if errors, ok := got.json["errors"].([]any); ok {
		for _, e := range errors {
			fields = append(fields, e.(map[string]any)["field"].(string))
		}
	}
	return strconv.Itoa(got.status) + " " + strings.Join(fields, " ")
}

// setUp makes meter requests, a plan of the limits, and customer acme on it.
func (n *node) setUp(limits string) {
	n.t.Helper()
	prices := `{"meter":"requests","model":"per_unit","unit_price":"0.01","included":3}`
	if strings.Contains(limits, "allocation") { // of which no plan may price a meter that counts what passes
		prices = ""
	}
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":2000,
		"features":{"sso":true,"seats":5,"ratio":1.5,"tier":"gold"},"limits":[`+limits+`],
		"prices":[`+prices+`]}`)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","timezone":"Europe/Berlin"}`)
}

const hourly = `{"name":"hourly","meter":"requests","algorithm":"fixed_window","limit":5,"window":"1h"}`

// key makes a key of a scope and returns its header value.
func (n *node) key(scope string) string {
	n.t.Helper()
	return "Bearer " + n.want(201, "POST", "/v1/keys", `{"name":"a","scope":"`+scope+`"}`).json["secret"].(string)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
