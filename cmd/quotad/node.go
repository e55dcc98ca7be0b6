package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/api"
	"quotad/internal/api/admin"
	"quotad/internal/api/serve"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/closing"
	"quotad/internal/billing/invoices"
	"quotad/internal/billing/reconcile"
	"quotad/internal/events"
	"quotad/internal/plans/catalog"
	"quotad/internal/plans/store"
	"quotad/internal/plans/sweep"
	"quotad/internal/postgres"
	"quotad/internal/quota"
	"quotad/internal/quota/session"
	"quotad/internal/quota/upkeep"
	"quotad/internal/web"
	"quotad/internal/webhooks"
)

// node contains the parts of one quotad process, connected to each other.
type node struct {
	log        *slog.Logger
	url        string // the node's URL for clients on this machine
	dataDir    string // of the embedded server; empty for an external database
	front      *front
	reads      *pgxpool.Pool // connection pool of the engine, for reads of quotas and usage, and for cleaning
	pool       *pgxpool.Pool // connection pool of the store, for configuration and upkeep
	clock      *postgres.Clock
	store      *store.Store
	catalog    *catalog.Catalog
	engine     *quota.Engine
	accounts   *accounts.Accounts
	closing    *closing.Worker
	cleaner    *upkeep.Cleaner
	census     *upkeep.Census
	degraded   *degradation
	archiver   *sweep.Archiver
	numberer   *events.Numberer
	webhooks   *webhooks.Webhooks
	sender     *webhooks.Sender
	api        *api.Server
	pages      *web.Pages
	beats      *heartbeat
	startBeats func()

	atLeast         func(time.Duration) time.Duration // settings.atLeast
	ready, stopping atomic.Bool
	stopBy          time.Time          // when requests and the engine must have ended; set when the stop begins
	cancel          context.CancelFunc // ends the background work
	background      sync.WaitGroup
}

// openNode creates the parts on a migrated database, connects them to each other, and starts the background
// work.
func openNode(ctx context.Context, s *settings, databaseURL string, front *front, log *slog.Logger) (*node, error) {
	n := &node{log: log, url: front.urls[0], dataDir: s.embeddedDir(), front: front, atLeast: s.atLeast}
	err := n.connect(ctx, s, databaseURL)
	if err != nil {
		return nil, err
	}
	stopwatch := s.stopwatch
	if stopwatch == nil {
		stopwatch = newStopwatch()
	}
	n.clock = postgres.NewClock(databaseURL, log)
	n.clock.Within, n.clock.Width = s.patience, s.patience
	hooks := accounts.NewHooks(n.clock.Now, *s.CloseDelay)
	n.catalog = catalog.New(n.pool, catalog.Options{
		Customers: s.readyCustomers(), PackedBytes: s.packedBytes(), Monotonic: stopwatch, Now: n.clock.Now, DefaultPlan: *s.DefaultPlan,
		Caps: hooks.CapPeriods, Within: s.patience, Log: log,
	})
	n.store = store.New(n.pool, store.Options{Committed: n.catalog.Committed, Billing: hooks.Billing(), Steady: n.clock.Steady, Within: s.patience})
	n.engine, err = quota.NewEngine(quota.Options{
		Connect: postgres.Connector(databaseURL, session.SettingsWithin(s.DecideWithin)), DecideWithin: s.DecideWithin,
		Confirm: n.catalog.Confirm, History: n.catalog.History,
		Pool: n.reads, Now: n.clock.Now, Wall: time.Now, Stopwatch: stopwatch,
		Returns: n.catalog.Returns, MemoryUsable: n.catalog.Fresh, AlsoAdjusted: invoices.OpenAdjustments, Patience: s.patience, Log: log,
		Lanes: s.Lanes, MaxQueue: s.MaxQueue, MemorySize: s.readyCustomers(), MaxReservations: s.MaxReservations,
	})
	if err != nil {
		n.clock.Close()
		n.reads.Close()
		n.pool.Close()
		return nil, err
	}
	n.cleaner = upkeep.NewCleaner(upkeep.CleanerOptions{
		Pool: n.reads, Now: n.clock.Now, Stopwatch: stopwatch, Usable: n.catalog.Fresh, Targets: n.catalog.Targets, Expire: n.engine.Expire, Log: log,
	})
	n.archiver = sweep.NewArchiver(n.store, n.catalog.Fresh, log)
	n.openEvents(s)
	n.accounts = accounts.New(n.store, hooks)
	invoices := invoices.New(n.accounts, *s.CorrectionTime)
	n.closing = closing.New(closing.Options{
		Pool: n.pool, Accounts: n.accounts, Invoices: invoices, Catalog: n.catalog, Engine: n.engine, Stopwatch: stopwatch, Log: log,
		StepTimeout: s.atLeast(s.CloseStep),
	})
	registry := prometheus.NewRegistry()
	n.api = api.New(api.Options{
		Options: serve.Options{
			Engine: n.engine, Catalog: n.catalog, Store: n.store, Accounts: n.accounts, Invoices: invoices, Closing: n.closing,
			Ready: n.state, Now: n.clock.Now, Estimate: n.clock.Estimate, Wall: time.Now, Registry: registry, Log: log,
			ResetStyle: s.resetStyle(), Deadline: s.RequestTimeout, DecideWithin: s.DecideWithin, FailedKeys: s.FailedKeys,
			NodeMemory: newTuning(s, log).memory(),
		},
		Reconciler: reconcile.New(reconcile.Options{Pool: n.pool, Stopwatch: stopwatch}), Webhooks: n.webhooks, Sender: n.sender,
		PublicURL: s.PublicURL, LocalURL: n.url, SeparateMetrics: s.MetricsListen != "", Version: version,
		Portal: admin.Portal{URL: n.pagesURL(s), Origins: s.PortalOrigins, ReturnOrigins: s.PortalReturnOrigins},
	})
	n.measure(s, registry)
	background := n.work(ctx, s)
	if err := n.openPages(s); err != nil {
		return nil, errors.Join(err, n.close())
	}
	n.background.Go(func() { n.pages.Run(background) })
	n.beats = n.newHeartbeat()
	n.startBeats = func() { n.background.Go(func() { n.beats.run(background) }) }
	return n, nil
}

// connect opens the connection pools of a node. It returns an error if the server lacks room for all sessions of
// the node, or if the shared settings differ from the settings in force.
func (n *node) connect(ctx context.Context, s *settings, databaseURL string) error {
	var err error
	if n.pool, err = postgres.Open(ctx, databaseURL, postgres.PoolOptions{Serving: true}); err != nil {
		return badDatabaseURL(err)
	}
	if n.reads, err = postgres.Open(ctx, databaseURL, postgres.PoolOptions{Params: session.PoolSettings, Serving: true}); err != nil {
		n.pool.Close()
		return badDatabaseURL(err)
	}
	err = n.patiently(ctx, s.StartTimeout, func() error {
		if err := n.checkSessions(ctx, s.Lanes, databaseURL); err != nil {
			return err
		}
		return s.agree(ctx, store.New(n.pool, store.Options{}))
	})
	if err != nil {
		n.reads.Close()
		n.pool.Close()
	}
	return err
}

// openEvents creates the parts that list events and send them to webhooks.
func (n *node) openEvents(s *settings) {
	n.numberer = events.NewNumberer(n.pool, *s.EventRetention, n.log)
	n.webhooks = webhooks.New(n.pool, s.privateWebhooks())
	n.sender = webhooks.NewSender(n.webhooks, n.clock.Now, n.log)
}

// measure registers the metrics of the node.
func (n *node) measure(s *settings, with *prometheus.Registry) {
	n.census = upkeep.NewCensus(n.reads, n.clock.Now, *s.IDRetention, n.log)
	n.degraded = newDegradation()
	with.MustRegister(append(n.engine.Collectors(), newGauges(n), newInsides(n))...)
}

// work starts the background work, which runs until close.
func (n *node) work(ctx context.Context, s *settings) context.Context {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n.cancel = cancel
	n.background.Go(func() { n.clock.Run(background) })
	n.background.Go(func() { _ = n.catalog.Run(background) }) // Run returns only when its context ends
	n.background.Go(func() { n.catalog.RunUses(background, n.store) })
	sweeper := sweep.NewSweeper(n.store, n.clock.Now, n.log)
	n.background.Go(func() { sweeper.Run(background) })
	thresholds := sweep.NewThresholds(sweep.ThresholdsOptions{
		Store: n.store, Now: n.clock.Now, CatchUp: n.catalog.CatchUp, Targets: n.catalog.CappedTargets, Notify: n.engine.Notify, Log: n.log,
	})
	n.background.Go(func() { thresholds.Run(background) })
	// The forgetter also runs without a default plan, because anonymous customers of an earlier default plan may
	// remain.
	forgetter := sweep.NewForgetter(n.store, n.catalog.Targets, *s.AnonymousTTL, n.log)
	n.background.Go(func() { forgetter.Run(background) })
	trimmer := sweep.NewTrimmer(n.store, *s.AuditRetention, n.log)
	n.background.Go(func() { trimmer.Run(background) })
	n.background.Go(func() { n.numberer.Run(background) })
	n.background.Go(func() { n.sender.Run(background) })
	n.background.Go(func() { n.cleaner.Run(background) })
	refusals := upkeep.NewTrimmer(n.reads, n.clock.Now, n.catalog.Fresh, n.log)
	n.background.Go(func() { refusals.Run(background) })
	n.background.Go(func() { n.archiver.Run(background) })
	rotator := upkeep.NewRotator(n.reads, n.clock.Now, *s.IDRetention, n.log)
	n.background.Go(func() { rotator.Run(background) })
	months := upkeep.NewPartitioner(n.reads, n.clock.Now, n.log)
	n.background.Go(func() { months.Run(background) })
	n.background.Go(func() { n.closing.Run(background) })
	n.background.Go(func() { n.census.Run(background) })
	n.background.Go(func() { n.degraded.watch(background, n) })
	return background
}

// warm reads the database's time and the newest change, and waits for the sessions of lanes, before the first
// hit needs them. It logs a warning if the default plan does not work.
func (n *node) warm(ctx context.Context, s *settings) error {
	err := n.patiently(ctx, s.StartTimeout, func() error {
		if _, err := n.clock.Now(ctx); err != nil {
			return fmt.Errorf("read the database's clock: %w", err)
		}
		if err := n.catalog.Renew(ctx); err != nil {
			return fmt.Errorf("read the newest change: %w", err)
		}
		return n.engine.Connected(ctx)
	})
	if err != nil {
		return err
	}
	// A bad default plan causes only a warning, because the plan may be written later and is looked up when a
	// hit needs it.
	if err := n.catalog.CheckDefaultPlan(ctx); err != nil {
		n.log.Warn("unknown customers are refused until this is put right", "error", err)
	}
	if limit, window := n.catalog.Outlasting(ctx, *s.AnonymousTTL); limit != "" {
		n.log.Warn("a limit of the default plan counts for longer than --anonymous-ttl: an anonymous customer that waits that long has it again; make the ttl longer with `quotad settings set`",
			"plan", *s.DefaultPlan, "limit", limit, "window", window, "anonymous_ttl", writtenTime(*s.AnonymousTTL))
	}
	return nil
}

// patiently runs a step of the start, and retries it for at most patience while the database is temporarily
// unavailable.
func (n *node) patiently(ctx context.Context, patience time.Duration, do func() error) error {
	giveUp := time.Now().Add(patience)
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := do()
		passing := postgres.Passing(err) || errors.Is(err, session.ErrUnavailable)
		if !passing || ctx.Err() != nil {
			return err
		}
		if time.Now().Add(pause).After(giveUp) {
			return fmt.Errorf("the database could not be used within %s: %w; --start-timeout waits longer", patience, err)
		}
		if pause == firstPause {
			n.log.Warn("waiting for the database", "at_most", patience, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// newStopwatch returns a monotonic clock, which returns the time since this call and never steps.
func newStopwatch() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// serve makes the API serve all further requests.
func (n *node) serve() {
	n.ready.Store(true)
	metrics := http.NewServeMux() // for the separate metrics listener, if there is one
	metrics.Handle("GET /metrics", n.api.Service.MetricsHandler())
	// Profiles are served on the metrics listener only, which is inside the network and requires no key.
	metrics.HandleFunc("GET /debug/pprof/", pprof.Index)
	metrics.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	metrics.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	metrics.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	n.front.use(n.handler(), metrics)
	n.startBeats()
}

// degradedAfter is the time for which changes may stay unread because the database is slow before /readyz
// reports degraded. If the database is unreachable, the next poll already reports it.
const degradedAfter = 3 * time.Second

// state returns the state that /readyz reports. reason explains why a node is degraded.
func (n *node) state() (state serve.State, reason string) {
	switch {
	case n.stopping.Load():
		return serve.StateStopping, ""
	case !n.ready.Load():
		return serve.StateStarting, ""
	}
	if err := n.hindrance(); err != nil {
		return serve.StateDegraded, reasonOf(err)
	}
	if !n.catalog.FreshWithin(n.atLeast(degradedAfter)) {
		return serve.StateDegraded, "the database is too slow: changes are seen late"
	}
	return serve.StateReady, ""
}

// hindrance returns the error that keeps the node from charging hits or from reading changes, or nil.
func (n *node) hindrance() error { return cmp.Or(n.engine.Trouble(), n.catalog.Trouble()) }

// reasonOf describes an error without hosts and roles, because strangers can read it. The log contains the whole
// error.
func reasonOf(err error) string {
	said, ok := errors.AsType[*pgconn.PgError](err)
	state := ""
	if ok {
		state = " (SQLSTATE " + said.Code + ")"
	}
	switch {
	case errors.Is(err, postgres.ErrTransactionPooler):
		return "the database URL leads to a transaction pooler"
	case errors.Is(err, session.ErrSlow):
		return "the database is too slow: on_outage decides hits"
	case errors.Is(err, session.ErrUnavailable):
		return "the database is out of reach"
	case errors.Is(err, session.ErrReadOnly):
		return "the database is read only (SQLSTATE 25006)"
	case errors.Is(err, session.ErrNoSession):
		return "the database does not serve this node" + state + ": see its log"
	case errors.Is(err, session.ErrBusy):
		return "the database keeps hits waiting too long" + state + ": see this node's log"
	case errors.Is(err, session.ErrOutcomeUnknown):
		return "the database's answers to hits were lost" + state + ": see this node's log"
	}
	return "the database refuses a statement" + state + ": see this node's log"
}

// close ends the background parts in order: it decides the waiting hits, ends the background work, and closes
// the connections. It returns at most goodbye after stopBy, so a database that does not answer cannot block the
// process.
func (n *node) close() error {
	if n.stopBy.IsZero() { // the node has not served requests
		n.stopBy = time.Now().Add(n.atLeast(stopLimit))
	}
	ctx, cancel := context.WithDeadline(context.Background(), n.stopBy)
	defer cancel()
	cutOff := n.stopBy.Add(n.atLeast(goodbye))
	var err error
	if !doneBy(cutOff, func() {
		err = n.engine.Close(ctx)
		n.cancel()
		n.background.Wait()
	}) {
		return errLeft
	}
	if n.ready.Load() {
		n.beats.end(ctx)
	}
	if soon := time.Now().Add(n.atLeast(goodbye)); soon.Before(cutOff) {
		cutOff = soon
	}
	if !doneBy(cutOff, func() { n.clock.Close(); n.reads.Close(); n.pool.Close() }) {
		n.log.Warn("the database did not let go of all connections in time: they end with this process")
	}
	return err
}

// errLeft is returned if work did not end in time.
var errLeft = errors.New("work under way did not end in time, and was cut off")

// doneBy runs do and reports whether it returned before limit. After limit the caller continues without waiting
// for do.
func doneBy(limit time.Time, do func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	late := time.NewTimer(time.Until(limit))
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}
