package catalog

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// change is one row of the table of changes. kind is one of the store's kinds. at, µs, is when
// it was made: a restored database may have another change of the same number.
type change struct {
	number    int64
	kind, key string
	at        int64
}

const selectChanges = `
	SELECT n.number, coalesce(c.number, 0), coalesce(c.kind, ''), coalesce(c.key, ''), coalesce(c.at, 'epoch')
	FROM change_number n LEFT JOIN LATERAL (
		SELECT * FROM changes WHERE number >= $1 ORDER BY number LIMIT $2) c ON true
	ORDER BY c.number`

// poller is the connection on which changes are asked for. Nothing else uses it. So no change
// waits behind the reads of requests and upkeep.
type poller struct {
	pool *pgxpool.Pool // the connection is configured as those of this pool

	mu   sync.Mutex
	conn *pgx.Conn // nil: none yet, or the last one broke
}

// use runs do on the connection, and opens it first where there is none.
func (p *poller) use(ctx context.Context, do func(*pgx.Conn) error) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil || p.conn.IsClosed() {
		if p.conn, err = connect(ctx, p.pool, pollerName); err != nil {
			return err
		}
	}
	return do(p.conn)
}

func (p *poller) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		closeWithin(p.conn, listenTimeout)
		p.conn = nil
	}
}

// connect opens a connection like those of a pool, under a name of its own.
func connect(ctx context.Context, pool *pgxpool.Pool, name string) (*pgx.Conn, error) {
	config := pool.Config()
	config.ConnConfig.RuntimeParams["application_name"] = name
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err == nil && config.AfterConnect != nil {
		if err = config.AfterConnect(ctx, conn); err != nil {
			closeWithin(conn, listenTimeout)
		}
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// closeWithin closes a connection in order, within limit.
func closeWithin(conn *pgx.Conn, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = conn.Close(ctx)
}

// changesFrom returns the number of the newest change, and the changes from number first on,
// at most pollRows+1.
func changesFrom(ctx context.Context, from *pgx.Conn, first int64) (newest int64, changes []change, err error) {
	rows, _ := from.Query(ctx, selectChanges, first, pollRows+1)
	var c change
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&newest, &c.number, &c.kind, &c.key, &at}, func() error {
		if c.number > 0 {
			c.at = at.UnixMicro()
			changes = append(changes, c)
		}
		return nil
	})
	return newest, changes, err
}

const selectMark = `SELECT coalesce((SELECT at FROM changes WHERE number = $1), 'epoch')`

func changeMark(ctx context.Context, from *pgx.Conn, number int64) (int64, error) {
	var at time.Time
	err := from.QueryRow(ctx, selectMark, number).Scan(&at)
	return at.UnixMicro(), err
}
