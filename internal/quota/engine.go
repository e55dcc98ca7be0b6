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
)

// Options are what an Engine is made with. Connect, Pool, Now and Stopwatch are required;
// a zero number means its default.
type Options struct {
	// Connect opens a session of a lane's own, with SessionSettings.
	Connect func(context.Context) (*pgx.Conn, error)
	// Pool serves the reads and the statistics.
	Pool *pgxpool.Pool
	// Now is the one clock, PostgreSQL's, µs since the Unix epoch. It fails when the
	// offset to it is not known well enough; then nothing is charged.
	Now func(context.Context) (int64, error)
	// Stopwatch is monotonic time since some start.
	Stopwatch func() time.Duration
	// MemoryUsable says whether refusals may be answered from memory: this node has seen
	// all changes of the last second. Nil: always.
	MemoryUsable func() bool
	Log          *slog.Logger

	Lanes      int           // sessions that charge; default 1
	MaxQueue   int           // hits waiting in a lane; default 10,000
	MaxBatch   int           // hits in one transaction; default 1,000, at most MaxBatchHits
	MemorySize int           // counters whose refusals are remembered; default 100,000
	Deadline   time.Duration // of one batch, default 5 s
}

// MaxBatchHits keeps the running sums of a batch's costs inside 64 bits.
const MaxBatchHits = 4096

func (o *Options) setDefaults() {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.Lanes, 1)
	def(&o.MaxQueue, 10_000)
	def(&o.MaxBatch, 1000)
	def(&o.MemorySize, 100_000)
	o.MaxBatch = min(o.MaxBatch, MaxBatchHits)
	if o.Deadline <= 0 {
		o.Deadline = 5 * time.Second
	}
	if o.MemoryUsable == nil {
		o.MemoryUsable = func() bool { return true }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Engine decides hits. Any number of engines work on one database, in one process or in
// many. Safe for concurrent use.
type Engine struct {
	options Options
	lanes   []*lane
	memory  *memory
	denials *denials
	stats   counters
	cancel  context.CancelFunc
	running sync.WaitGroup

	// Parts that tests break, to see that the breakage is noticed.
	statements map[statementName]string
	waves      func([]*group) [][]*group
	commitAt   statementName // also commit behind this one: ""
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
	if o.Connect == nil || o.Pool == nil || o.Now == nil || o.Stopwatch == nil {
		return nil, errors.New("quota: Connect, Pool, Now and Stopwatch are required")
	}
	o.setDefaults()
	m, err := newMemory(o.MemorySize)
	if err != nil {
		return nil, err
	}
	e := &Engine{options: o, memory: m, denials: newDenials(o.Pool), statements: hotStatements(), waves: waves}
	for range o.Lanes {
		e.lanes = append(e.lanes, newLane(e))
	}
	return e, nil
}

func (e *Engine) start() {
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	for _, l := range e.lanes {
		e.running.Go(func() { l.run(ctx) })
	}
	e.running.Go(func() { e.denials.run(ctx, e.options.Log) })
}

// Close refuses new hits with ErrStopped, decides those that wait, writes the statistics
// and ends. When ctx ends first, what is in flight is cut off with ErrOutcomeUnknown.
func (e *Engine) Close(ctx context.Context) error {
	for _, l := range e.lanes {
		l.stop()
	}
	e.denials.stop()
	ended := make(chan struct{})
	go func() {
		e.running.Wait()
		close(ended)
	}()
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

// Hit is one hit of many (see DecideAll).
type Hit struct {
	Target *Target
	Cost   int64 // 0 … MaxNumber; 0 looks only
	Look   bool  // judge and charge nothing
}

// Result is a decision or why there is none.
type Result struct {
	Decision Decision
	Err      error
}

// Decide admits and charges one hit, or refuses it and charges nothing.
//
// Errors: ErrBusy, ErrUnavailable, ErrStopped and *StaleError, nothing was charged;
// ErrOutcomeUnknown, also when ctx ended after the hit was sent.
func (e *Engine) Decide(ctx context.Context, t *Target, cost int64) (Decision, error) {
	if cost == 0 {
		return e.Look(ctx, t, 0)
	}
	h, r := e.submit(ctx, t, cost)
	if h != nil {
		r = h.wait(ctx)
		e.count(&r, t, cost)
	}
	return r.Decision, r.Err
}

// DecideAll decides many hits, each for itself, those of one customer in their order.
func (e *Engine) DecideAll(ctx context.Context, hits []Hit) []Result {
	results := make([]Result, len(hits))
	waiting := make([]*hit, len(hits))
	for i, h := range hits {
		if h.Look || h.Cost == 0 {
			continue
		}
		waiting[i], results[i] = e.submit(ctx, h.Target, h.Cost)
	}
	for i, h := range hits {
		switch {
		case h.Look || h.Cost == 0:
			results[i].Decision, results[i].Err = e.Look(ctx, h.Target, h.Cost)
		case waiting[i] != nil:
			results[i] = waiting[i].wait(ctx)
			e.count(&results[i], h.Target, h.Cost)
		}
	}
	return results
}

// submit answers from memory, or hands the hit to its lane and returns it to wait for.
func (e *Engine) submit(ctx context.Context, t *Target, cost int64) (*hit, Result) {
	if e.options.MemoryUsable() {
		// Without a clock nothing is refused from memory; the lane says what is wrong.
		if now, err := e.options.Now(ctx); err == nil {
			if d, ok := e.memory.refuse(t, now, cost); ok {
				e.stats.fromMemory.Add(1)
				r := Result{Decision: d}
				e.count(&r, t, cost)
				return nil, r
			}
		}
	}
	h := &hit{target: t, cost: cost, done: make(chan struct{}, 1)}
	lane := e.lanes[int(Shard(t.Counters[0].Key.Customer))%len(e.lanes)]
	if err := lane.enqueue(h); err != nil {
		return nil, Result{Err: err}
	}
	return h, Result{}
}

// wait returns the hit's result. When ctx ends first, a hit that nobody took yet leaves
// no trace; one that was taken will be charged or not, and its caller cannot know.
func (h *hit) wait(ctx context.Context) Result {
	select {
	case <-h.done:
		return h.result
	case <-ctx.Done():
		if h.abandon() {
			return Result{Err: fmt.Errorf("%w: %w", ErrBusy, ctx.Err())}
		}
		return Result{Err: fmt.Errorf("%w: %w", ErrOutcomeUnknown, ctx.Err())}
	}
}

// count keeps the statistics of a result.
func (e *Engine) count(r *Result, t *Target, cost int64) {
	switch {
	case r.Err != nil:
		e.stats.failed.Add(1)
	case r.Decision.Allowed:
		e.stats.admitted.Add(1)
	default:
		e.stats.refused.Add(1)
		hour, _ := t.runningHour(r.Decision.At)
		e.denials.add(t, hour, cost)
	}
}
