package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
)

const (
	// listenTimeout is the time limit for connecting and for a ping. listenCheck is the interval of pings on
	// a quiet connection. listenBackoff and maxBackoff are the first and the longest pause between attempts
	// to connect.
	listenTimeout = 2 * time.Second
	listenCheck   = 10 * time.Second
	listenBackoff = 50 * time.Millisecond
	maxBackoff    = 2 * time.Second
	// listenerName and pollerName are the application_name of a catalog's connections.
	listenerName = "quotad-changes"
	pollerName   = "quotad-poll"
)

// listen keeps a listening connection open until ctx ends.
func (c *Catalog) listen(ctx context.Context) {
	// Many nodes may lose their connections at once. Random pauses prevent them from reconnecting all at
	// once.
	pauses := &backoff.ExponentialBackOff{InitialInterval: listenBackoff, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: maxBackoff}
	for ctx.Err() == nil {
		listened, err := c.listenOnce(ctx)
		if listened {
			pauses.Reset()
		}
		if ctx.Err() != nil {
			return
		}
		c.options.Log.Debug("the connection that listens for changes ended; polling meanwhile", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(pauses.NextBackOff()):
		}
	}
}

// listenOnce listens on one connection until it breaks. listened reports whether LISTEN succeeded.
func (c *Catalog) listenOnce(ctx context.Context) (listened bool, err error) {
	within, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	conn, err := postgres.ConnectLike(within, c.pool, listenerName)
	if err != nil {
		return false, err
	}
	defer closeWithin(conn)
	if _, err := conn.Exec(within, "LISTEN quotad_changes"); err != nil {
		return false, err
	}
	for {
		c.signal() // also at first, because earlier notifications were missed
		if err := waitForNotice(ctx, conn); err != nil {
			return true, err
		}
	}
}

// waitForNotice returns at the next notification. If the connection is quiet, it pings the server every
// listenCheck.
func waitForNotice(ctx context.Context, conn *pgx.Conn) error {
	for {
		within, cancel := context.WithTimeout(ctx, listenCheck)
		_, err := conn.WaitForNotification(within)
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		within, cancel = context.WithTimeout(ctx, listenTimeout)
		err = conn.Ping(within)
		cancel()
		if err != nil {
			return err
		}
	}
}
