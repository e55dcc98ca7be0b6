package session

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// troubleLasts is the time for which a problem counts as present after a session last encountered the problem.
// It is longer than the interval between two attempts to connect, so a lasting failure does not lapse between
// attempts.
const troubleLasts = 5 * time.Second

// saidAgain is the time after which a trouble that continues or returns is logged again.
const saidAgain = time.Minute

// maxTroubles is the maximum number of troubles that are distinguished.
const maxTroubles = 16

// Troubles contains the reasons why hits cannot be charged. Each reason is logged with its SQLSTATE, and again
// after saidAgain. Worst reports the state of the node.
type Troubles struct {
	log *slog.Logger

	mu   sync.Mutex
	met  map[string]trouble // by nameOf
	open bool               // a trouble was logged, but the end of all troubles was not
	// answeredBy is the time on the stopwatch by which all hits that were sent before the end of the last outage
	// have a response.
	answeredBy time.Duration
}

type trouble struct {
	err  error
	at   time.Duration // the time at which the trouble was last met, on the stopwatch
	said time.Duration // the time at which the trouble was last logged, on the stopwatch
}

// NewTroubles returns empty Troubles.
func NewTroubles(log *slog.Logger) *Troubles {
	return &Troubles{log: log, met: make(map[string]trouble)}
}

// Report records a trouble that a session has met now. err wraps an error of this package.
func (t *Troubles) Report(err error, now time.Duration) {
	name := nameOf(err)
	t.mu.Lock()
	defer t.mu.Unlock()
	known, met := t.met[name]
	if !met && len(t.met) == maxTroubles {
		return
	}
	if !met || now-known.said >= saidAgain {
		known.said, t.open = now, true
		t.log.Error("hits cannot be charged", "sqlstate", StateOf(err), "error", err)
	}
	known.err, known.at = err, now
	t.met[name] = known
}

// ReportHit records a trouble that was returned for a hit. It ignores a hit that may have been sent before the
// last outage ended, because such a hit does not show the state of the database since then.
func (t *Troubles) ReportHit(err error, now time.Duration) {
	t.mu.Lock()
	old := now < t.answeredBy
	t.mu.Unlock()
	if !old {
		t.Report(err, now)
	}
}

// StateOf returns the SQLSTATE of an error that the server reported, or an empty string.
func StateOf(err error) string {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		return said.Code
	}
	return ""
}

// nameOf returns the same name for all errors that are the same trouble to a reader. In an outage, each attempt
// may fail with another error, and messages of one SQLSTATE may contain different rows.
func nameOf(err error) string {
	for _, why := range []error{ErrUnavailable, ErrReadOnly} {
		if errors.Is(err, why) {
			return why.Error()
		}
	}
	if state := StateOf(err); state != "" {
		return state
	}
	if errors.Is(err, ErrOutcomeUnknown) {
		return ErrOutcomeUnknown.Error()
	}
	return err.Error()
}

// expire ends the problems that no session has encountered for troubleLasts, and deletes the records of problems
// that may be logged again.
func (t *Troubles) expire(now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.met) == 0 {
		return
	}
	lasts := false
	for name, known := range t.met {
		switch {
		case known.lasts(now):
			lasts = true
		case now-known.said >= saidAgain:
			delete(t.met, name)
		}
	}
	if t.open && !lasts {
		t.open = false
		t.log.Info("hits are charged again")
	}
}

// forgive ends an outage. Troubles that were met before now no longer count, and neither do troubles of hits that
// wait now. Each of these hits waits for at most within.
func (t *Troubles) forgive(now, within time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answeredBy = now + within
	for name, known := range t.met {
		known.at = -2 * troubleLasts
		t.met[name] = known
	}
}

// lasts reports whether a trouble still counts.
func (t *trouble) lasts(now time.Duration) bool { return now-t.at <= troubleLasts }

// Worst returns the worst trouble, or nil. ErrNoSession has precedence over ErrUnavailable, and ErrUnavailable
// over all others.
func (t *Troubles) Worst(now time.Duration) (worst error) {
	t.expire(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, known := range t.met {
		if known.lasts(now) && (worst == nil || weight(known.err) > weight(worst)) {
			worst = known.err
		}
	}
	return worst
}

func weight(err error) int {
	switch {
	case errors.Is(err, ErrNoSession):
		return 2
	case errors.Is(err, ErrUnavailable):
		return 1
	}
	return 0
}
