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

// maxTroubles bounds those that are told apart.
const maxTroubles = 16

// Troubles are the reasons that keep an engine's sessions from the database. The log gets each
// trouble once, until all are over. Worst tells whoever asks how the node is.
type Troubles struct {
	log *slog.Logger

	mu  sync.Mutex
	met map[string]trouble // by what they have in common
}

type trouble struct {
	err error
	at  time.Duration // when it was last met, on the stopwatch
}

// NewTroubles are none yet.
func NewTroubles(log *slog.Logger) *Troubles {
	return &Troubles{log: log, met: make(map[string]trouble)}
}

// report notes a trouble, an error of Unreached's, that a session has met now.
func (t *Troubles) report(err error, now time.Duration) {
	name := nameOf(err)
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.met[name]; !known {
		if len(t.met) == maxTroubles {
			return
		}
		t.log.Error("hits cannot be charged", "error", err)
	}
	t.met[name] = trouble{err, now}
}

// nameOf is the same for errors that are the same trouble to a reader: of an outage each
// attempt may fail otherwise.
func nameOf(err error) string {
	said, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case errors.Is(err, ErrUnavailable):
		return ErrUnavailable.Error()
	case ok:
		return said.Code + said.Message
	}
	return err.Error()
}

// expire forgets what was not met for troubleLasts.
func (t *Troubles) expire(now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.met) == 0 {
		return
	}
	for name, known := range t.met {
		if now-known.at > troubleLasts {
			delete(t.met, name)
		}
	}
	if len(t.met) == 0 {
		t.log.Info("hits are charged again")
	}
}

// Worst is an ErrNoSession before an ErrUnavailable, or nil.
func (t *Troubles) Worst(now time.Duration) (err error) {
	t.expire(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, known := range t.met {
		if err == nil || errors.Is(known.err, ErrNoSession) {
			err = known.err
		}
	}
	return err
}
