package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Sessions of the pages are rows, so that every node knows them.

const findSession = `SELECT data FROM sessions WHERE token = $1 AND expires_at > $2`

// FindSession is what a session knows, as JSON, at now, µs; nil when there is none or it is over.
func (s *Store) FindSession(ctx context.Context, token string, now int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	var data []byte
	err := s.pool.QueryRow(ctx, findSession, hashOf(token), now).Scan(&data)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return data, Classify(err)
}

const insertSession = `INSERT INTO sessions (token, data, expires_at) VALUES ($1, $2, $3)`

// CreateSession makes a session, which ends at expires, µs.
func (s *Store) CreateSession(ctx context.Context, token string, data []byte, expires int64) error {
	return s.exec(ctx, insertSession, hashOf(token), data, expires)
}

const updateSession = `UPDATE sessions SET data = $2, expires_at = $3 WHERE token = $1`

// UpdateSession writes what a session knows and when it ends, µs. It makes none: a request that
// was under way at the logout does not bring the session back.
func (s *Store) UpdateSession(ctx context.Context, token string, data []byte, expires int64) error {
	return s.exec(ctx, updateSession, hashOf(token), data, expires)
}

const deleteSession = `DELETE FROM sessions WHERE token = $1`

// DeleteSession ends a session, if it is there.
func (s *Store) DeleteSession(ctx context.Context, token string) error {
	return s.exec(ctx, deleteSession, hashOf(token))
}

const deleteOverSessions = `
	WITH links AS (
		DELETE FROM portal_links WHERE token IN (SELECT token FROM portal_links WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)
		RETURNING token
	), ended AS (
		DELETE FROM sessions WHERE token IN (SELECT token FROM sessions WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)
		RETURNING token
	)
	SELECT greatest((SELECT count(*) FROM links), (SELECT count(*) FROM ended))`

// DeleteOverSessions removes at most so many sessions, and so many links, that are over at now,
// µs. more reports that there may be others.
func (s *Store) DeleteOverSessions(ctx context.Context, now int64, most int) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	var removed int
	err = s.pool.QueryRow(ctx, deleteOverSessions, now, most).Scan(&removed)
	return removed == most, Classify(err)
}

const endSessionsOf = `
	WITH links AS (DELETE FROM portal_links WHERE customer = $1)
	DELETE FROM sessions WHERE data ->> 'customer' = $1 AND data ? 'customer'`

// exec runs one statement.
func (s *Store) exec(ctx context.Context, statement string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	_, err := s.pool.Exec(ctx, statement, args...)
	return Classify(err)
}
