package session

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// A statement that waited too long in an outage does not have the circuit ask again once the outage is
// over: that probe may open the circuit on a machine that has much to make up for.
func TestSuspicionEndsWithItsOutage(t *testing.T) {
	url, start, probes, seen := pgtest.NewDatabase(t), time.Now(), 0, make(chan struct{})
	var c *Circuit
	c = NewCircuit(time.Hour, "SELECT 1", &Options{
		Connect: func(ctx context.Context) (*pgx.Conn, error) {
			if probes++; probes == 1 {
				return nil, context.DeadlineExceeded
			}
			<-seen
			c.Suspect(&pgconn.PgError{Code: "55P03"})
			return postgres.Connect(ctx, url, SessionSettings)
		},
		Now:       func(context.Context) (int64, error) { return 1, nil },
		Stopwatch: func() time.Duration { return time.Since(start) },
		Log:       slog.New(slog.DiscardHandler),
		Troubles:  NewTroubles(slog.New(slog.DiscardHandler)),
		Patience:  testkit.Patience,
	})
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx, nil) })
	c.Suspect(&pgconn.PgError{Code: "55P03"})
	testkit.Eventually(t, "the circuit opens", func() bool { return c.Err() != nil })
	close(seen)
	testkit.Eventually(t, "the circuit is closed", func() bool { return c.Err() == nil })
	cancel()
	running.Wait() // or a probe that is on its way would not be seen
	if probes != 2 || len(c.suspected) > 0 {
		t.Errorf("%d probes, and %d suspicions left", probes, len(c.suspected))
	}
}
