package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// The large steps of a batch take so many counters between two waits, or write so many customers.
	countersAtOnce, customersAtOnce = 80, 20
	// eachTakes is how long a batch is to take for each of its customers. So 100,000 are closed within
	// five minutes, and hits have all time that this leaves.
	eachTakes = 2850 * time.Microsecond
	// A batch waits for restLeast to restMost percent of the time that it works, whatever it leaves.
	restLeast, restMost = 50, 300
	// paceLeast is the shortest wait. Shorter ones add up first.
	paceLeast = time.Millisecond
	// stretchMost bounds what one statement counts as work. If it waited, as for a lock, it used no
	// processor.
	stretchMost = 10 * time.Millisecond
)

// pacedTx is a transaction that leaves the processors to hits for a share of its time. Before a
// statement it waits, by how long it has worked since it waited last. Long stretches of work make hits
// late. Short ones find the processors' caches cold, and so take more work: see docs/benchmarks.
type pacedTx struct {
	pgx.Tx
	watch   func() time.Duration // see Options.Stopwatch
	rest    int64                // how long it waits, in percent of the time that it works
	since   time.Duration        // what is not in owed yet
	owed    time.Duration        // still to be waited for; below 0 when it waited for too long
	waited  time.Duration        // in all
	hurried bool
}

// nextRest is how long the next batch waits, in percent of the time that it works, behind one of a
// size that worked for so long.
func nextRest(size int, worked time.Duration) int64 {
	spare := time.Duration(size)*eachTakes - worked
	return min(max(int64(100*spare/max(worked, 1)), restLeast), restMost)
}

// pacedOf is the pace of a transaction, nil if it has none.
func pacedOf(tx pgx.Tx) *pacedTx {
	p, _ := tx.(*pacedTx)
	return p
}

// hurry ends the waits of a transaction that holds what everybody needs from now on.
func (p *pacedTx) hurry() {
	if p != nil {
		p.hurried = true
	}
}

// wait waits, or returns early when ctx ends.
func (p *pacedTx) wait(ctx context.Context) {
	if p == nil || p.hurried {
		return
	}
	began := p.watch()
	p.owed += min(began-p.since, stretchMost) * time.Duration(p.rest) / 100
	if p.since = began; p.owed < paceLeast {
		return
	}
	timer := time.NewTimer(p.owed)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	p.since = p.watch()
	p.waited += p.since - began
	p.owed = max(p.owed-(p.since-began), -paceLeast) // timers are late on a busy machine
}

func (p *pacedTx) Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error) {
	p.wait(ctx)
	return p.Tx.Exec(ctx, statement, args...)
}

func (p *pacedTx) Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error) {
	p.wait(ctx)
	return p.Tx.Query(ctx, statement, args...)
}

func (p *pacedTx) QueryRow(ctx context.Context, statement string, args ...any) pgx.Row {
	p.wait(ctx)
	return p.Tx.QueryRow(ctx, statement, args...)
}

func (p *pacedTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	p.wait(ctx)
	return p.Tx.SendBatch(ctx, b)
}
