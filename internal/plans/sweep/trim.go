package sweep

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"quotad/internal/plans/store"
	"quotad/internal/quota/upkeep"
)

// The shortest and the longest retention of the audit trail.
const (
	MinAuditRetention = 24 * time.Hour
	MaxAuditRetention = 100 * 365 * 24 * time.Hour
)

const (
	trimEvery = time.Hour
	// trimRows limits the rows that one transaction deletes.
	trimRows = 1000
)

// Trimmer deletes audit entries that are older than the retention. A month is dropped as a whole when all
// its entries are older.
//
// All nodes may run a Trimmer on the same database. Later nodes find nothing to do.
type Trimmer struct {
	store     *store.Store
	retention time.Duration
	log       *slog.Logger
}

// NewTrimmer returns a Trimmer. The setting audit-retention must contain the same retention, from
// MinAuditRetention to MaxAuditRetention, because the database uses the setting to decide which rows may
// be deleted. A nil log means slog.Default.
func NewTrimmer(store *store.Store, retention time.Duration, log *slog.Logger) *Trimmer {
	if log == nil {
		log = slog.Default()
	}
	return &Trimmer{store: store, retention: retention, log: log}
}

// Run trims the audit trail until ctx ends.
func (t *Trimmer) Run(ctx context.Context) {
	work := upkeep.Repeated{
		Log: t.log, First: rand.N(time.Minute), Pause: trimEvery, Do: t.trim, //nolint:gosec // not all nodes at one time, and not a secret
		Fails: "old entries of the audit trail cannot be deleted now; it is tried again",
		Works: "old entries of the audit trail are deleted again",
	}
	work.Run(ctx)
}

const trimAudit = `
	DELETE FROM audit_default WHERE (at, id) IN (
		SELECT at, id FROM audit_default WHERE at < $1 ORDER BY at, id LIMIT $2)`

// trim drops the months that are too old, and deletes old entries of months that have no partition.
func (t *Trimmer) trim(ctx context.Context) error {
	if err := t.dropMonths(ctx); err != nil {
		return err
	}
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
	ctx, cancel := context.WithTimeout(ctx, t.store.Within())
	defer cancel()
	now, err := t.store.Now(ctx)
	if err != nil {
		return 0, err
	}
	done, err := t.store.Pool().Exec(ctx, trimAudit, now.Add(-t.retention), trimRows)
	return done.RowsAffected(), store.Classify(err)
}

func (t *Trimmer) dropMonths(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.store.Within())
	defer cancel()
	now, err := t.store.Now(ctx)
	if err == nil {
		err = upkeep.DropMonths(ctx, t.store.Pool(), now.Add(-t.retention).UnixMicro())
	}
	return store.Classify(err)
}
