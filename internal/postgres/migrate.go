package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

const (
	// migrateLockID is the advisory lock for changes of schemas. It may be any number that no other program uses
	// in the database.
	migrateLockID = 0x71756f746164 // "quotad"
	// migrateDeadline limits a whole migration, including the wait for another node's migration, if ctx has no
	// deadline.
	migrateDeadline = 10 * time.Minute
	// migrateLockTimeout is the maximum time for which a statement of a migration waits for a table. Every hit
	// on the table queues behind the waiting statement, so the statement should fail soon. The next start tries
	// again.
	migrateLockTimeout = "15s"
	// versionTable is the table in which goose stores applied versions and their fingerprints.
	versionTable = "migrations"
)

var (
	// ErrNothingToRevert is returned by MigrateDown on an empty schema.
	ErrNothingToRevert = errors.New("there is no migration to take back")
	// ErrNewerSchema is returned by MigrateDown if this quotad does not have the newest migration of the
	// database.
	ErrNewerSchema = errors.New("the schema was made by a later quotad")
)

// Migration is one change of the schema.
type Migration struct {
	Version   int64
	Name      string    // name of the file
	AppliedAt time.Time // zero if the migration is not applied
}

// MigrateOptions are the options of migrations. The zero value is the usual configuration.
type MigrateOptions struct {
	Logger *slog.Logger // nil means slog.Default()
	// Lingering is the time for which MigrateDown waits for the sessions of a quotad that has just stopped; 0
	// means 2 s.
	Lingering time.Duration
}

// Migrate applies the migrations of fsys that the database lacks, in order, and returns them. Several processes
// may call Migrate at once: one process migrates, and the other processes wait, for at most ten minutes if ctx
// has no deadline. If a later quotad has migrated the database further, Migrate changes nothing and logs a
// warning, because each release can run on the schema of the next release. Migrate needs only the right to
// create tables in the database.
//
// Migrate, MigrateDown and MigrateStatus return ErrOtherSchema, an error to branch on, and then leave the
// database unchanged.
func Migrate(ctx context.Context, databaseURL string, fsys fs.FS, opts MigrateOptions) ([]Migration, error) {
	var applied []Migration
	err := withProvider(ctx, databaseURL, fsys, opts, func(ctx context.Context, m *migrator) error {
		if newest := m.newest(); m.version > newest {
			m.log.Warn("the database's schema is newer than this quotad; going on with it",
				"schema_version", m.version, "newest_known", newest)
			return nil
		}
		results, err := m.provider.Up(ctx)
		for _, r := range results {
			applied = append(applied, Migration{Version: r.Source.Version, Name: path.Base(r.Source.Path), AppliedAt: time.Now()})
			m.log.Info("applied a migration", "version", r.Source.Version, "name", path.Base(r.Source.Path), "took", r.Duration)
		}
		if err == nil { // another build may have migrated meanwhile
			err = m.check(ctx)
		}
		return err
	})
	if err != nil {
		return applied, fmt.Errorf("migrate the database: %w", err)
	}
	return applied, nil
}

// MigrateDown reverts the newest migration, deletes the data in its tables and columns, and returns the
// migration. Errors to branch on: ErrNothingToRevert, ErrNewerSchema, ErrServing.
func MigrateDown(ctx context.Context, databaseURL string, fsys fs.FS, opts MigrateOptions) (Migration, error) {
	var reverted Migration
	release, err := claimSchema(ctx, databaseURL, cmp.Or(opts.Lingering, claimPatience))
	if err != nil {
		return reverted, fmt.Errorf("migrate the database down: %w", err)
	}
	defer release()
	err = withProvider(ctx, databaseURL, fsys, opts, func(ctx context.Context, m *migrator) error {
		if newest := m.newest(); m.version > newest {
			return fmt.Errorf("%w: it is at version %d, and this quotad knows %d; use the later one to take it back",
				ErrNewerSchema, m.version, newest)
		}
		r, err := m.provider.Down(ctx)
		if errors.Is(err, goose.ErrNoNextVersion) {
			return ErrNothingToRevert
		}
		if err != nil {
			return err
		}
		reverted = Migration{Version: r.Source.Version, Name: path.Base(r.Source.Path)}
		m.log.Info("took a migration back", "version", reverted.Version, "name", reverted.Name, "took", r.Duration)
		return nil
	})
	if err != nil {
		return reverted, fmt.Errorf("migrate the database down: %w", err)
	}
	return reverted, nil
}

// MigrateStatus returns the database's version (0 if no migration was applied) and all migrations of fsys in
// order, with the times at which they were applied.
func MigrateStatus(ctx context.Context, databaseURL string, fsys fs.FS, opts MigrateOptions) (version int64, all []Migration, err error) {
	err = withProvider(ctx, databaseURL, fsys, opts, func(ctx context.Context, m *migrator) error {
		version = m.version
		status, err := m.provider.Status(ctx)
		for _, s := range status {
			all = append(all, Migration{Version: s.Source.Version, Name: path.Base(s.Source.Path), AppliedAt: s.AppliedAt})
		}
		return err
	})
	if err != nil {
		return 0, nil, fmt.Errorf("status of the migrations: %w", err)
	}
	return version, all, nil
}

// migrator is a goose provider with the state of the database at the start.
type migrator struct {
	provider *goose.Provider
	log      *slog.Logger
	version  int64 // version of the database
	check    func(context.Context) error
}

func (m *migrator) newest() int64 {
	sources := m.provider.ListSources()
	return sources[len(sources)-1].Version // goose rejects an empty FS
}

// withProvider connects, reads the schema's version under the lock and calls do.
func withProvider(ctx context.Context, databaseURL string, fsys fs.FS, opts MigrateOptions, do func(context.Context, *migrator) error) error {
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	ctx, cancel := context.WithTimeout(ctx, migrateDeadline)
	defer cancel()
	db, err := openSQL(databaseURL)
	if err != nil {
		return err
	}
	defer db.Close()
	locker, err := lock.NewPostgresSessionLocker(
		lock.WithLockID(migrateLockID),
		// The lock is tried once a second. A session that waited in the server would keep a snapshot, for which
		// CREATE INDEX CONCURRENTLY waits for ever.
		lock.WithLockTimeout(1, uint64(migrateDeadline/time.Second)),
		lock.WithUnlockTimeout(1, 5),
	)
	if err != nil {
		return err
	}
	files, err := fingerprintsOf(fsys)
	if err != nil {
		return err
	}
	store, err := newVersionStore(files)
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectCustom, db, fsys,
		goose.WithStore(store), goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	check := func(ctx context.Context) error { return files.checkOn(ctx, db) }
	if err := check(ctx); err != nil {
		return err
	}
	// GetDBVersion takes the lock, and goose creates its table under the lock. goose's Up alone would create the
	// table before it takes the lock, which is a race.
	version, err := provider.GetDBVersion(ctx)
	if err == nil {
		err = check(ctx) // a process that waited now sees another build's migrations
	}
	if err != nil {
		return err
	}
	return do(ctx, &migrator{provider: provider, log: opts.Logger, version: version, check: check})
}

// openSQL returns the database as a database/sql handle, which goose needs.
func openSQL(databaseURL string) (*sql.DB, error) {
	config, err := parse(databaseURL, nil, map[string]string{
		"lock_timeout":      migrateLockTimeout,
		"statement_timeout": "0", // building an index may take any time
	})
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*config), nil
}
