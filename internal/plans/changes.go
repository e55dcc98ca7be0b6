package plans

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// change is one row of the table of changes. kind is one of the kinds in store.go; at, µs,
// tells it from another change of its number in another state of the database.
type change struct {
	number    int64
	kind, key string
	at        int64
}

const changesFrom = `
	SELECT n.number, coalesce(c.number, 0), coalesce(c.kind, ''), coalesce(c.key, ''), coalesce(c.at, 'epoch')
	FROM change_number n LEFT JOIN LATERAL (
		SELECT * FROM changes WHERE number >= $1 ORDER BY number LIMIT $2) c ON true
	ORDER BY c.number`

// changesFrom returns the newest change's number and the changes from number first on,
// at most pollRows and one.
func (s *Store) changesFrom(ctx context.Context, first int64) (newest int64, changes []change, err error) {
	rows, _ := s.pool.Query(ctx, changesFrom, first, pollRows+1)
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

const changeMark = `SELECT coalesce((SELECT at FROM changes WHERE number = $1), 'epoch')`

func (s *Store) changeMark(ctx context.Context, number int64) (int64, error) {
	var at time.Time
	err := s.pool.QueryRow(ctx, changeMark, number).Scan(&at)
	return at.UnixMicro(), err
}
