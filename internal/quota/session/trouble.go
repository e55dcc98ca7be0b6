package session

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// troubleLasts is how long a trouble counts after a session last met it. A session that cannot
// connect tries again more often than that.
const troubleLasts = 5 * time.Second

// saidAgain is how long the log is not told again of a trouble that goes on, or comes back.
const saidAgain = time.Minute

// maxTroubles bounds those that are told apart.
const maxTroubles = 16

// Troubles are the reasons that keep hits from being charged. The log gets each one with its
// SQLSTATE, and again after saidAgain. Worst tells whoever asks how the node is.
type Troubles struct {
	log *slog.Logger

	mu   sync.Mutex
	met  map[string]trouble // by what they have in common
	open bool               // the log was told of one, and not that all are over
	// answeredBy is when all hits are answered that were sent before the last outage ended, on the stopwatch.
	answeredBy time.Duration
}

type trouble struct {
	err  error
	at   time.Duration // when it was last met, on the stopwatch
	said time.Duration // when the log was last told, on the stopwatch
}

// NewTroubles are none yet.
func NewTroubles(log *slog.Logger) *Troubles {
	return &Troubles{log: log, met: make(map[string]trouble)}
}

// Report notes a trouble that a session has met now: an error that wraps one of this package's.
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

// ReportHit notes a trouble that a hit was answered with, unless the hit may have been sent before the last outage
// ended: it says nothing about the database since.
func (t *Troubles) ReportHit(err error, now time.Duration) {
	t.mu.Lock()
	old := now < t.answeredBy
	t.mu.Unlock()
	if !old {
		t.Report(err, now)
	}
}

// StateOf is the SQLSTATE of an error that the server said, or empty.
func StateOf(err error) string {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		return said.Code
	}
	return ""
}

// nameOf is the same for errors that are the same trouble to a reader: of an outage each
// attempt may fail otherwise, and of one SQLSTATE each message may name another row.
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

// expire ends what was not met for troubleLasts. It forgets what the log may be told of again.
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

// forgive ends an outage: no trouble that was met before now counts any more, and none of the hits that wait
// now, each for within at most.
func (t *Troubles) forgive(now, within time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answeredBy = now + within
	for name, known := range t.met {
		known.at = -2 * troubleLasts
		t.met[name] = known
	}
}

// lasts reports whether a trouble counts still.
func (t *trouble) lasts(now time.Duration) bool { return now-t.at <= troubleLasts }

// Worst is an ErrNoSession before an ErrUnavailable before any other, or nil.
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
