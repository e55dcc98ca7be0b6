package plans

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// stamped is a change with the instant that tells it from another of its number in
// another state of the database.
type stamped struct {
	Change
	at int64 // µs
}

const changesFrom = `
	SELECT n.number, coalesce(c.number, 0), coalesce(c.kind, ''), coalesce(c.key, ''), coalesce(c.at, 'epoch')
	FROM change_number n LEFT JOIN LATERAL (
		SELECT * FROM changes WHERE number >= $1 ORDER BY number LIMIT $2) c ON true
	ORDER BY c.number`

// changesFrom returns the newest change's number and the changes from number first on,
// at most pollRows and one.
func (s *Store) changesFrom(ctx context.Context, first int64) (newest int64, changes []stamped, err error) {
	rows, _ := s.pool.Query(ctx, changesFrom, first, pollRows+1)
	var c stamped
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&newest, &c.Number, &c.Kind, &c.Key, &at}, func() error {
		if c.Number > 0 {
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
