package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
)

// Sessions of the pages are rows, so that every node knows them.

// lives is whether a session s, or a link s into the portal, has not ended at $2, µs. It ends with
// its customer and with the key that made it.
const lives = ` s.expires_at > $2
	AND (s.customer_id IS NULL OR EXISTS (SELECT FROM customers c WHERE c.id = s.customer_id AND c.erased_at IS NULL))
	AND EXISTS (
		SELECT FROM keys k WHERE k.id = s.key_id AND k.revoked_at IS NULL
		   AND (k.expires_at IS NULL OR k.expires_at > timestamptz 'epoch' + $2::bigint * interval '1 microsecond')) `

const findSession = `
	SELECT s.data, coalesce((SELECT c.change FROM customers c WHERE c.id = s.customer_id), 0)
	FROM sessions s WHERE s.token = $1 AND` + lives

// FindSession is what a session knows, as JSON, at now, µs; nil when there is none or it is over.
// change is the newest change of its customer, or 0.
func (s *Store) FindSession(ctx context.Context, token string, now int64) (data []byte, change int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	err = s.pool.QueryRow(ctx, findSession, hashOf(token), now).Scan(&data, &change)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, 0, nil
	}
	return data, change, Classify(err)
}

const followedSessions = `
	SELECT s.token FROM sessions s
	WHERE s.token = ANY ($1) AND NOT EXISTS (SELECT FROM customers c WHERE c.id = s.customer_id AND c.archived_at IS NOT NULL) AND` + lives

// FollowedSessions are those of the tokens whose session has not ended at now, µs, and whose
// customer is not archived.
func (s *Store) FollowedSessions(ctx context.Context, tokens []string, now int64) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	hashes, of := make([][]byte, len(tokens)), make(map[string]string, len(tokens))
	for i, token := range tokens {
		hashes[i] = hashOf(token)
		of[string(hashes[i])] = token
	}
	rows, _ := s.pool.Query(ctx, followedSessions, hashes, now)
	found, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	all := make(map[string]bool, len(found))
	for _, hash := range found {
		all[of[string(hash)]] = true
	}
	return all, Classify(err)
}

const insertSession = `INSERT INTO sessions (token, data, expires_at, customer_id, key_id) VALUES ($1, $2, $3, $4, $5)`

// CreateSession makes a session of a key, which ends at expires, µs.
func (s *Store) CreateSession(ctx context.Context, token string, data []byte, expires int64, key string) error {
	return s.exec(ctx, insertSession, hashOf(token), data, expires, nil, key)
}

const updateSession = `UPDATE sessions s SET data = $3, expires_at = $4 WHERE s.token = $1 AND` + lives

// UpdateSession writes what a session knows and when it ends, µs, if it has not ended at now. Else
// it is plans.ErrSessionOver: a request that was under way at the logout does not bring the session
// back, and what it read may be another customer's.
func (s *Store) UpdateSession(ctx context.Context, token string, data []byte, expires, now int64) error {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	done, err := s.pool.Exec(ctx, updateSession, hashOf(token), now, data, expires)
	if err == nil && done.RowsAffected() == 0 {
		return plans.ErrSessionOver
	}
	return Classify(err)
}

const deleteSession = `DELETE FROM sessions WHERE token = $1`

// DeleteSession ends a session, if it is there.
func (s *Store) DeleteSession(ctx context.Context, token string) error {
	return s.exec(ctx, deleteSession, hashOf(token))
}

// deleteOverSessions passes by what others delete at this moment, which they do in other orders.
const deleteOverSessions = `
	WITH links AS (
		DELETE FROM portal_links WHERE token IN (
			SELECT token FROM portal_links WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
		RETURNING token
	), ended AS (
		DELETE FROM sessions WHERE token IN (
			SELECT token FROM sessions WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
		RETURNING token
	)
	SELECT greatest((SELECT count(*) FROM links), (SELECT count(*) FROM ended))`

// DeleteOverSessions removes at most so many sessions, and so many links, that are over at now,
// µs. more reports that there may be others.
func (s *Store) DeleteOverSessions(ctx context.Context, now int64, most int) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	var removed int
	err = s.pool.QueryRow(ctx, deleteOverSessions, now, most).Scan(&removed)
	return removed == most, Classify(err)
}

// exec runs one statement.
func (s *Store) exec(ctx context.Context, statement string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	_, err := s.pool.Exec(ctx, statement, args...)
	return Classify(err)
}
