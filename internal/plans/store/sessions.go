package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
)

// Sessions of the web pages are stored as rows, so that every node can find them.

// lives is the condition that a session s, or a link s into the portal, has not ended at $2, µs. A
// session ends when its customer is erased or the key that created it ends.
const lives = ` s.expires_at > $2
	AND (s.customer_id IS NULL OR EXISTS (SELECT FROM customers c WHERE c.id = s.customer_id AND c.erased_at IS NULL))
	AND EXISTS (
		SELECT FROM keys k WHERE k.id = s.key_id AND k.revoked_at IS NULL
		   AND (k.expires_at IS NULL OR k.expires_at > timestamptz 'epoch' + $2::bigint * interval '1 microsecond')) `

const findSession = `
	SELECT s.data, coalesce((SELECT c.change FROM customers c WHERE c.id = s.customer_id), 0)
	FROM sessions s WHERE s.token = $1 AND` + lives

// FindSession returns the data of a session at now, µs, as JSON. The data is nil if the session does not
// exist or has ended. change is the newest change of its customer, or 0.
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

// FollowedSessions returns the tokens whose sessions have not ended at now, µs, and whose customers are
// not archived.
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

// CreateSession creates a session of a key. The session ends at expires, µs.
func (s *Store) CreateSession(ctx context.Context, token string, data []byte, expires int64, key string) error {
	return s.exec(ctx, insertSession, hashOf(token), data, expires, nil, key)
}

const updateSession = `UPDATE sessions s SET data = $3, expires_at = $4 WHERE s.token = $1 AND` + lives

// UpdateSession writes a session's data and its end, µs, if the session has not ended at now. Otherwise
// the error is plans.ErrSessionOver. A request in progress during the logout thus cannot revive the
// session, whose data may belong to another customer.
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

// DeleteSession ends a session if it exists.
func (s *Store) DeleteSession(ctx context.Context, token string) error {
	return s.exec(ctx, deleteSession, hashOf(token))
}

// deleteOverSessions skips rows that other transactions are deleting, because they lock rows in other
// orders.
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

// DeleteOverSessions removes sessions and links that ended at or before now, µs. It removes at most as many as
// most of each. more is true if there may be further rows to remove.
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
