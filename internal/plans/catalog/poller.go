package catalog

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/postgres"
)

// change is one row of the table of changes. kind is one of the store's kinds, and at is the instant of
// the change, µs. token distinguishes the change from another change with the same number, which a
// restored database may have.
type change struct {
	number    int64
	kind, key string
	at        int64
	token     [16]byte
}

// mark identifies a change that was seen. Number 0 means no change, which every database has.
type mark struct {
	number int64
	token  [16]byte
}

func (c *change) mark() mark { return mark{c.number, c.token} }

const selectChanges = `
	SELECT n.number, coalesce(c.number, 0), coalesce(c.kind, ''), coalesce(c.key, ''), coalesce(c.at, 'epoch'),
		coalesce(c.token, '00000000-0000-0000-0000-000000000000')
	FROM change_number n LEFT JOIN LATERAL (
		SELECT * FROM changes WHERE number >= $1 ORDER BY number LIMIT $2) c ON true
	ORDER BY c.number`

// poller owns the connection on which changes are queried. Nothing else uses the connection, so changes
// never wait behind the reads of requests and upkeep.
type poller struct {
	pool *pgxpool.Pool // the connection is configured like the connections of this pool

	mu   sync.Mutex
	conn *pgx.Conn // nil before the first use and after the connection was closed
}

// use runs do on the connection, and first opens the connection if necessary.
func (p *poller) use(ctx context.Context, do func(*pgx.Conn) error) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil || p.conn.IsClosed() {
		if p.conn, err = postgres.ConnectLike(ctx, p.pool, pollerName); err != nil {
			return err
		}
	}
	return do(p.conn)
}

// instead runs do, which polls on another connection. The next poll opens a new connection, because the
// previous connection may lead to another server.
func (p *poller) instead(do func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		closeWithin(p.conn)
		p.conn = nil
	}
	return do()
}

func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		closeWithin(p.conn)
		p.conn = nil
	}
}

// closeWithin closes a connection properly, within listenTimeout.
func closeWithin(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), listenTimeout)
	defer cancel()
	_ = conn.Close(ctx)
}

// changesFrom returns the number of the newest change, and the changes from number first on, at most
// pollRows+1.
func changesFrom(ctx context.Context, from *pgx.Conn, first int64) (newest int64, changes []change, err error) {
	rows, _ := from.Query(ctx, selectChanges, first, pollRows+1)
	var c change
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&newest, &c.number, &c.kind, &c.key, &at, &c.token}, func() error {
		if c.number > 0 {
			c.at = at.UnixMicro()
			changes = append(changes, c)
		}
		return nil
	})
	return newest, changes, err
}

const selectToken = `SELECT token FROM changes WHERE number = $1`

// has reports whether the database contains the change m.
func (m mark) has(ctx context.Context, from *pgx.Conn) (bool, error) {
	if m.number == 0 {
		return true, nil
	}
	var token [16]byte
	err := from.QueryRow(ctx, selectToken, m.number).Scan(&token)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return token == m.token, err
}
