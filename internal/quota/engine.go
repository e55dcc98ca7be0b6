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

// Options are what an Engine is made with. Connect, Pool, Now, Wall and Stopwatch are required;
// a zero number means its default.
type Options struct {
	// Connect opens a session of a lane's own, with SessionSettings.
	Connect func(context.Context) (*pgx.Conn, error)
	// Confirm makes sure, on a new session, that the database has the history that targets are
	// resolved in, or has History be another one. Nil: nobody asks.
	Confirm func(context.Context, *pgx.Conn) error
	// History is the history that targets must be of, see model.Target.SetHistory. Nil: of any.
	History func() uint64
	// Pool serves the reads and the statistics, with PoolSettings.
	Pool *pgxpool.Pool
	// Now is the one clock, PostgreSQL's, µs since the Unix epoch. It fails when the
	// offset to it is not known well enough; then nothing is charged. It bounds itself how long
	// that takes, for hits wait for it.
	Now func(context.Context) (int64, error)
	// Wall is the node's own clock, time.Now, for deadlines of connections.
	Wall func() time.Time
	// Stopwatch is monotonic time since some start.
	Stopwatch func() time.Duration
	// Returns says whether units of a meter may come back otherwise than by time or a
	// change (refunds, reservations): then a refusal is remembered for a second only. Nil:
	// of none.
	Returns func(meter int32) bool
	// MemoryUsable says whether refusals may be answered from memory: this node has seen
	// all changes of the last second. Nil: always.
	MemoryUsable func() bool
	Log          *slog.Logger

	Lanes      int // sessions that charge hits, and as many workers, each with one of its own; default 1
	MaxQueue   int // hits waiting in a lane, and as many in a worker, half of them one sender's; default 10,000
	MemorySize int // counters whose refusals are remembered; default 100,000
	// MaxNewValues is how many counters of attributes' values hits and reservations make for each
	// customer in a second; default queue.MostNewValues.
	MaxNewValues    int
	MaxReservations int // that a customer may have open on a meter; default 10,000
	// DecideWithin is how long a batch may take until the database is too slow to be waited for, see
	// session.Circuit. 0: it may take its time.
	DecideWithin time.Duration
	// Patience is how long the engine waits for the database at least, where it would give it up earlier by
	// itself: to connect, and for an answer. A lock is waited for no longer. 0: the bounds of package
	// session.
	Patience time.Duration
	// AlsoAdjusted is a statement that each transaction sends after it has inserted adjustments, with the
	// same parameters: $1–$4 shard, customer, meter and hour, $5 key, $6 cost, $7 instant, $8 reason. It must
	// not wait for rows that others lock. "" is none.
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

// Engine decides hits. Any number of engines work on one database, in one process or in
// many. Safe for concurrent use.
type Engine struct {
	Sender  // quotad itself, which has no name
	options Options
	lanes   []*lane.Lane
	workers []*locked.Worker
	node    *queue.Node
	local   *local.Memory // of outages
	denials *denials
	// readTries: each connection of the pool may have died with the server's last restart.
	readTries int
	cancel    context.CancelFunc
	running   sync.WaitGroup // the lanes
	keeping   sync.WaitGroup // the workers
	writing   sync.WaitGroup // the writer of denials
	watching  sync.WaitGroup // the circuit
}

// NewEngine starts an engine; Close ends it. It does not wait for the database.
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

// Close refuses new hits with ErrStopped, decides those that wait, writes the statistics
// and ends. When ctx ends first, what is in flight is cut off with ErrOutcomeUnknown.
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

// Failed notes an error for which a hit was answered with a 5xx. Where the database is the cause, it is
// a trouble, though its sessions and polls may work.
func (e *Engine) Failed(err error) {
	if errors.Is(err, session.ErrSlow) {
		return // the circuit says so
	}
	lost := errors.Is(err, session.ErrUnavailable) || errors.Is(err, session.ErrNoSession) || errors.Is(err, session.ErrOutcomeUnknown)
	if lost || session.StateOf(err) != "" {
		e.node.Troubles.ReportHit(err, e.options.Stopwatch())
	}
}

// Trouble is why hits cannot be charged, as far as the last seconds have shown: an
// ErrNoSession before an ErrUnavailable before any other, or nil. It is ErrSlow while the database is
// too slow to be waited for.
func (e *Engine) Trouble() error {
	worst := e.node.Troubles.Worst(e.options.Stopwatch())
	if slow := e.node.Circuit.Err(); slow != nil && !errors.Is(worst, session.ErrNoSession) {
		return slow
	}
	return worst
}

// connectedPause is how often Connected looks.
const connectedPause = 5 * time.Millisecond

// Connected waits until each lane and each worker has had a session that answered. It returns why
// one has none as soon as that is known, or ctx's error.
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
