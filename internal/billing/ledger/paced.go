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
	// restPercent is how long a transaction waits, of the time that it works.
	restPercent = 200
	// paceLeast is the shortest wait. Shorter ones add up first.
	paceLeast = time.Millisecond
	// paceMost bounds what one statement adds. If it waited, as for a lock, it used no processor.
	paceMost = 20 * time.Millisecond
)

// pacedTx is a transaction that leaves the processors to hits for some two thirds of its time. Before a
// statement it waits, by how long it has worked since it waited last. Long stretches of work make hits
// late. Short ones find the processors' caches cold, and so take more work: see docs/benchmarks.
type pacedTx struct {
	pgx.Tx
	watch   func() time.Duration // see Options.Stopwatch
	since   time.Duration        // what is not in owed yet
	owed    time.Duration        // still to be waited for; below 0 when it waited for too long
	hurried bool
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
	p.owed += min((began-p.since)*restPercent/100, paceMost)
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
