package quota

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// session keeps a lane's connection. It is made in the background, so that a database
// that does not even answer keeps no caller waiting. Used by the lane's goroutine only,
// but for down.
type session struct {
	options    *Options
	statements map[statementName]string
	down       atomic.Bool // there is none, and it takes longer than patience to make one
	beside     *session    // to which operations are handed over; nil: none

	// commitBehind is a statement behind which a transaction is cut in two: tests break it so.
	commitBehind statementName

	store    *store
	usedAt   time.Duration // when it was last asked for, on the stopwatch
	failures int           // to make one, in a row
	retryAt  time.Duration // not before
	making   chan made     // answers once while one is being made, else nil
	lastErr  error
}

type made struct {
	store *store
	err   error
}

const (
	connectLimit = 3 * time.Second        // to make a session, from the first byte to the last statement
	pingLimit    = time.Second            // to ask an idle one whether it is alive
	idleLimit    = time.Second            // unused for longer, a session is asked first
	patience     = 250 * time.Millisecond // how long hits wait for a session that is being made
	maxRetryWait = time.Second
)

var errStillDown = errors.New("the last attempt to connect failed a moment ago")

// away reports whether operations wait for a session that is not there.
func (s *session) away() bool { return s.down.Load() || s.beside != nil && s.beside.down.Load() }

// begin makes sure of a session and a clock, which reads now, µs. Errors: ErrUnavailable.
func (s *session) begin(ctx context.Context) (now int64, err error) {
	if err = s.ready(ctx); err == nil {
		now, err = s.options.Now(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return now, nil
}

// ready makes sure of a session, or says why there is none. One that was idle is asked
// first: if it is dead by now, nothing was sent on it and no outcome is lost.
func (s *session) ready(ctx context.Context) error {
	now := s.options.Stopwatch()
	idle := now - s.usedAt
	s.usedAt = now
	if s.store != nil && idle >= idleLimit && !s.store.alive(ctx) || s.store != nil && s.store.conn.IsClosed() {
		s.drop()
	}
	if s.store != nil {
		return nil
	}
	if s.making == nil {
		if s.failures > 0 && now < s.retryAt {
			return errStillDown
		}
		s.make(ctx)
	}
	patient := time.NewTimer(patience)
	defer patient.Stop()
	select {
	case m := <-s.making:
		s.making = nil
		return s.take(ctx, m)
	case <-patient.C:
	case <-ctx.Done():
	}
	s.down.Store(true)
	return errors.Join(errors.New("a new connection to the database is being made"), s.lastErr)
}

// make begins a session in a goroutine, which ends within connectLimit.
func (s *session) make(ctx context.Context) {
	making := make(chan made, 1)
	s.making = making
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectLimit)
		defer cancel()
		store, err := openStore(ctx, s.options, s.statements)
		making <- made{store, err}
	}()
}

// take takes over what was made; ctx is that of all who use the session.
func (s *session) take(ctx context.Context, m made) error {
	s.store, s.lastErr = m.store, m.err
	if m.err != nil {
		s.failures++
		s.retryAt = s.options.Stopwatch() + min(maxRetryWait, 50*time.Millisecond<<min(s.failures, 5))
		s.down.Store(true)
		return m.err
	}
	s.store.follow(ctx)
	s.store.commitBehind = s.commitBehind
	s.failures = 0
	s.down.Store(false)
	return nil
}

// drop gives up the session.
func (s *session) drop() {
	if s.store != nil {
		s.store.close()
		s.store = nil
	}
}

// close ends it, one that is still being made too.
func (s *session) close() {
	s.drop()
	if s.making != nil {
		if m := <-s.making; m.store != nil {
			m.store.close()
		}
		s.making = nil
	}
}
