package quota

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/quota/lane"
	"quotad/internal/quota/local"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/refusals"
	"quotad/internal/quota/session"
)

// Options are the settings of an Engine. Connect, Pool, Now, Wall and Stopwatch are required. A number of 0
// means the default.
type Options struct {
	// Connect opens a session for a lane, with SessionSettings.
	Connect func(context.Context) (*pgx.Conn, error)
	// Confirm verifies on a new session that the database has the history in which targets are resolved. If the
	// database has another history, Confirm changes History. If Confirm is nil, nothing is verified.
	Confirm func(context.Context, *pgx.Conn) error
	// History returns the identity of the database's history, which changes when a failover or a restore loses
	// writes. Targets must belong to this history, see model.Target.SetHistory. If History is nil, targets of
	// any history are accepted.
	History func() uint64
	// Pool serves reads and statistics, with PoolSettings.
	Pool *pgxpool.Pool
	// Now returns PostgreSQL's time, the clock of all nodes, in µs since the Unix epoch. It fails if the offset
	// to that clock is not known well enough, and then nothing is charged. Now must bound its own duration,
	// because hits wait for it.
	Now func(context.Context) (int64, error)
	// Wall is the node's own clock, time.Now. It is used for deadlines of connections.
	Wall func() time.Time
	// Stopwatch returns the monotonic time since some start.
	Stopwatch func() time.Duration
	// Returns reports whether units of a meter may be returned by refunds and reservations, and not only by time
	// and changes. If so, a refusal is remembered for at most a second. If Returns is nil, no meter has such
	// units.
	Returns func(meter int32) bool
	// MemoryUsable reports whether refusals may be answered from memory, because this node has seen all changes
	// of the last second. If MemoryUsable is nil, they always may.
	MemoryUsable func() bool
	Log          *slog.Logger

	Lanes      int // sessions that charge hits, and as many workers, each with one of its own; default 1
	MaxQueue   int // hits waiting in a lane, and as many in a worker, half of them one sender's; default 10,000
	MemorySize int // counters whose refusals are remembered; default 100,000
	// MaxNewValues is the number of counters for new attribute values that hits and reservations may create for
	// each customer in a second. The default is queue.MostNewValues.
	MaxNewValues    int
	MaxReservations int // that a customer may have open on a meter; default 10,000
	// DecideWithin is the time after which a batch counts as too slow, see session.Circuit. 0 means that there
	// is no such time.
	DecideWithin time.Duration
	// Patience is the minimum time for which the engine waits for the database, both to connect and for an
	// answer. Locks have no longer wait. 0 means the bounds of package session.
	Patience time.Duration
	// AlsoAdjusted is a statement that each transaction sends after it has inserted adjustments, with the same
	// parameters: $1–$4 shard, customer, meter and hour, $5 key, $6 cost, $7 instant, $8 reason. The statement
	// must not wait for rows that others lock. An empty string means that there is no such statement.
	AlsoAdjusted string
}

func (o *Options) setDefaults() {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.Lanes, 1)
	def(&o.MaxQueue, 10_000)
	def(&o.MemorySize, 100_000)
	def(&o.MaxNewValues, queue.MostNewValues)
	def(&o.MaxReservations, 10_000)
	if o.MemoryUsable == nil {
		o.MemoryUsable = func() bool { return true }
	}
	if o.Returns == nil {
		o.Returns = func(int32) bool { return false }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Engine decides hits. Any number of engines, in one or many processes, may use the same database. An Engine is
// safe for concurrent use.
type Engine struct {
	Sender  // quotad itself, which has no name
	options Options
	lanes   []*lane.Lane
	workers []*locked.Worker
	node    *queue.Node
	local   *local.Memory // of outages
	denials *denials
	// readTries is the number of attempts of a read. After a restart of the server, each connection of the pool
	// may be broken.
	readTries int
	cancel    context.CancelFunc
	running   sync.WaitGroup // the lanes
	keeping   sync.WaitGroup // the workers
	writing   sync.WaitGroup // the writer of denials
	watching  sync.WaitGroup // the circuit
}

// NewEngine starts an engine, which Close ends. NewEngine does not wait for the database.
func NewEngine(o Options) (*Engine, error) {
	e, err := newEngine(o)
	if err != nil {
		return nil, err
	}
	e.start()
	return e, nil
}

func newEngine(o Options) (*Engine, error) {
	if o.Connect == nil || o.Pool == nil || o.Now == nil || o.Wall == nil || o.Stopwatch == nil {
		return nil, errors.New("quota: Connect, Pool, Now, Wall and Stopwatch are required")
	}
	o.setDefaults()
	m, err := refusals.New(o.MemorySize, o.Returns)
	if err != nil {
		return nil, err
	}
	n := &queue.Node{
		MaxQueue: o.MaxQueue, MaxReservations: o.MaxReservations, AlsoAdjusted: o.AlsoAdjusted, Memory: m,
		Values: queue.NewNewValues(o.MaxNewValues), Metrics: queue.NewMetrics(), History: o.History, Options: session.Options{
			Connect: o.Connect, Confirm: o.Confirm, Now: o.Now, Wall: o.Wall, Stopwatch: o.Stopwatch, Log: o.Log, Patience: o.Patience,
			Troubles: session.NewTroubles(o.Log),
		},
	}
	held, err := local.New(o.MemorySize)
	if err != nil {
		return nil, err
	}
	if o.DecideWithin > 0 {
		n.Circuit = session.NewCircuit(o.DecideWithin, probeSQL, &n.Options)
	}
	e := &Engine{options: o, node: n, local: held, readTries: 1 + int(o.Pool.Config().MaxConns), denials: newDenials(o.Pool, o.Now, o.Patience)}
	e.Sender = e.From("")
	for range o.Lanes {
		w := locked.New(n)
		e.workers = append(e.workers, w)
		e.lanes = append(e.lanes, lane.New(n, w))
	}
	return e, nil
}

func (e *Engine) start() {
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	for _, l := range e.lanes {
		e.running.Go(func() { l.Run(ctx) })
	}
	for _, w := range e.workers {
		e.keeping.Go(func() { w.Run(ctx) })
	}
	if e.node.Circuit != nil {
		var sessions []*session.Session
		for i, l := range e.lanes {
			sessions = append(sessions, &l.Session, &e.workers[i].Session)
		}
		e.watching.Go(func() { e.node.Circuit.Run(ctx, sessions) })
	}
	e.writing.Go(func() { e.denials.run(ctx, e.options.Log) })
}

// Close refuses new hits with ErrStopped, decides the waiting hits, writes the statistics and ends the engine.
// If ctx ends first, Close aborts the hits in flight with ErrOutcomeUnknown.
func (e *Engine) Close(ctx context.Context) error {
	for _, l := range e.lanes {
		l.Stop()
	}
	ended := make(chan struct{})
	go func() {
		e.running.Wait()
		for _, w := range e.workers { // to which a lane hands over
			w.Stop()
		}
		e.keeping.Wait()
		e.denials.stop() // what the lanes refused last is written too
		e.writing.Wait()
		close(ended)
	}()
	defer e.watching.Wait()
	defer e.cancel()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		e.cancel()
		<-ended
		return fmt.Errorf("the engine was cut off: %w", ctx.Err())
	}
}

// Failed records an error that was returned for a hit as a 5xx. If the database caused the error, the error
// counts as trouble, even if sessions and polls work.
func (e *Engine) Failed(err error) {
	if errors.Is(err, session.ErrSlow) {
		return // the circuit says so
	}
	lost := errors.Is(err, session.ErrUnavailable) || errors.Is(err, session.ErrNoSession) || errors.Is(err, session.ErrOutcomeUnknown)
	if lost || session.StateOf(err) != "" {
		e.node.Troubles.ReportHit(err, e.options.Stopwatch())
	}
}

// Trouble returns the reason why hits cannot be charged, as observed in the last seconds, or nil. ErrNoSession
// has precedence over ErrUnavailable, and ErrUnavailable over all others. Trouble returns ErrSlow while the
// database is too slow.
func (e *Engine) Trouble() error {
	worst := e.node.Troubles.Worst(e.options.Stopwatch())
	if slow := e.node.Circuit.Err(); slow != nil && !errors.Is(worst, session.ErrNoSession) {
		return slow
	}
	return worst
}

// connectedPause is the pause between two checks of Connected.
const connectedPause = 5 * time.Millisecond

// Connected waits until each lane and each worker has had a session that answered. If one of them cannot get a
// session, Connected returns the reason as soon as it is known. It returns ctx's error if ctx ends first.
func (e *Engine) Connected(ctx context.Context) error {
	looks := time.NewTicker(connectedPause)
	defer looks.Stop()
	for {
		missing := false
		for i, l := range e.lanes {
			missing = missing || l.Session.Made() == 0 || e.workers[i].Session.Made() == 0
		}
		if !missing {
			return nil
		}
		if err := e.Trouble(); err != nil {
			return err
		}
		select {
		case <-looks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
