package sweep

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"quotad/internal/plans/store"
	"quotad/internal/quota/upkeep"
)

// The bounds of the audit trail's retention.
const (
	MinAuditRetention = 24 * time.Hour
	MaxAuditRetention = 100 * 365 * 24 * time.Hour
)

const (
	trimEvery = time.Hour
	// trimRows bounds one transaction.
	trimRows = 1000
)

// Trimmer deletes entries of the audit trail that are older than its retention.
//
// All nodes may run one, on the same database. The later one finds nothing to do.
type Trimmer struct {
	store     *store.Store
	retention time.Duration
	log       *slog.Logger
}

// NewTrimmer returns a Trimmer. The setting audit-retention says the same retention, from
// MinAuditRetention to MaxAuditRetention: by it the database lets rows be deleted. A nil log is
// slog.Default.
func NewTrimmer(store *store.Store, retention time.Duration, log *slog.Logger) *Trimmer {
	if log == nil {
		log = slog.Default()
	}
	return &Trimmer{store: store, retention: retention, log: log}
}

// Run trims until ctx ends.
func (t *Trimmer) Run(ctx context.Context) {
	work := upkeep.Repeated{
		Log: t.log, First: rand.N(time.Minute), Pause: trimEvery, Do: t.trim, //nolint:gosec // not all nodes at one time, and not a secret
		Fails: "old entries of the audit trail cannot be deleted now; it is tried again",
		Works: "old entries of the audit trail are deleted again",
	}
	work.Run(ctx)
}

const trimAudit = `
	DELETE FROM audit WHERE id IN (
		SELECT id FROM audit WHERE at < clock_timestamp() - $1::interval ORDER BY at, id LIMIT $2)`

// trim deletes all that is too old.
func (t *Trimmer) trim(ctx context.Context) error {
	for {
		done, err := t.trimSome(ctx)
		if err != nil || done < trimRows {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(clearPause):
		}
	}
}

func (t *Trimmer) trimSome(ctx context.Context) (rows int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	done, err := t.store.Pool().Exec(ctx, trimAudit, t.retention, trimRows)
	return done.RowsAffected(), store.Classify(err)
}
