package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"quotad/internal/postgres"
	"quotad/internal/postgres/embedded"
	"quotad/migrations"
)

// database is the PostgreSQL server that stores quotad's data: the external server of --database-url, or an
// embedded server.
type database struct {
	url      string
	place    string           // the server or the directory, as shown in messages
	embedded *embedded.Server // the server that this process started; nil for an external one
	given    bool             // --database-url is set
}

// openDatabase starts the embedded server or waits for the external server, and then migrates the schema.
func openDatabase(ctx context.Context, c *common, patience time.Duration, log *slog.Logger) (*database, error) {
	db, err := c.connectOrStart(ctx, log)
	if err != nil {
		return nil, err
	}
	if err := db.prepare(ctx, patience, log); err != nil {
		return nil, errors.Join(err, db.close())
	}
	return db, nil
}

// connectOrStart returns the database that the settings name. It starts an embedded server, but does not connect
// to an external server.
func (c *common) connectOrStart(ctx context.Context, log *slog.Logger) (*database, error) {
	if c.DatabaseURL != "" {
		return &database{url: c.DatabaseURL, place: c.place(), given: true}, nil
	}
	options := embedded.Options{DataDir: c.dataDir(), Logger: log, OwnFiles: []string{demoKeyFile}}
	if c.embedded != nil {
		c.embedded(&options)
	}
	server, err := embedded.Start(ctx, options)
	switch {
	case err != nil && ctx.Err() != nil:
		// ctx ended while PostgreSQL's programs ran. Their errors are long, and the caller needs only the reason
		// why ctx ended.
		log.Debug("the embedded PostgreSQL was stopped while it started", "error", err)
		return nil, fmt.Errorf("while starting: %w", ctx.Err())
	case err != nil:
		return nil, orAnotherDir(options.DataDir, err)
	}
	return &database{url: server.URL(), place: c.place(), embedded: server}, nil
}

// orAnotherDir adds the advice to choose another data directory to err, if the directory could not be created or
// is a file. If this user may not open the directory, err already contains this advice.
func orAnotherDir(dir string, err error) error {
	info, statErr := os.Stat(dir)
	cannotBe := errors.Is(err, os.ErrNotExist) && errors.Is(statErr, os.ErrNotExist)
	if cannotBe || statErr == nil && !info.IsDir() {
		return fmt.Errorf("%w: choose another with --data-dir (QUOTAD_DATA_DIR)", err)
	}
	return err
}

// gone returns a channel that is closed when this process gives up its embedded server. For an external server
// the channel is nil and blocks forever.
func (db *database) gone() <-chan struct{} {
	if db.embedded == nil {
		return nil
	}
	return db.embedded.Done()
}

// close stops the embedded server.
func (db *database) close() error {
	if db.embedded == nil {
		return nil
	}
	select {
	case <-db.embedded.Done():
		return nil // the reason why it ended was already reported
	default:
	}
	if err := db.embedded.Stop(context.Background()); err != nil {
		return fmt.Errorf("stop the embedded PostgreSQL: %w", err)
	}
	return nil
}

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 2 * time.Second
)

// prepare waits at most patience until it can reach the database. Then it migrates the schema, which may take
// longer than patience.
func (db *database) prepare(ctx context.Context, patience time.Duration, log *slog.Logger) error {
	giveUp, pause := time.Now().Add(patience), firstPause
	for try := 1; ; try++ {
		err := db.migrate(ctx, giveUp, log)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("while starting: %w", ctx.Err())
		case errors.Is(err, postgres.ErrBadURL):
			return badDatabaseURL(err)
		case !postgres.Passing(err):
			return db.explain(err) // the server answered with an error
		case !time.Now().Add(pause).Before(giveUp) && postgres.Outage(err):
			return fmt.Errorf("%s could not be reached within %s: %w%s; --start-timeout waits longer", db.place, patience, err, checkURL)
		case !time.Now().Add(pause).Before(giveUp):
			return fmt.Errorf("%s could not be used within %s: %w; --start-timeout waits longer", db.place, patience, err)
		}
		if try == 1 {
			log.Warn("waiting for the database", "database", postgres.Redact(db.url), "at_most", patience, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPause)
	}
}

// migrate is one attempt to connect within the deadline and then to migrate. The migration has no deadline.
func (db *database) migrate(ctx context.Context, deadline time.Time, log *slog.Logger) error {
	if err := db.greet(ctx, deadline, true); err != nil {
		return err
	}
	_, err := postgres.Migrate(ctx, db.url, migrations.FS, postgres.MigrateOptions{Logger: everyLine(log)})
	return err
}

var errTooOld = errors.New("PostgreSQL is too old")

// greet connects and verifies that quotad can work with the server: its version is new enough, its schema is
// quotad's, and no pooler assigns another session to each transaction. If write is true, greet also verifies
// that the database accepts writes.
func (db *database) greet(ctx context.Context, deadline time.Time, write bool) error {
	within, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	if db.given { // the next checks prepare statements, which such a pooler loses
		if err := postgres.CheckPooler(within, db.url); err != nil {
			return err
		}
	}
	conn, err := postgres.Connect(within, db.url, nil)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(within) }()
	var number int
	err = conn.QueryRow(within, `SELECT current_setting('server_version_num')::integer`).Scan(&number)
	if err != nil {
		return err
	}
	if major := number / 10_000; major < embedded.OldestMajor {
		return fmt.Errorf("%w: the server is version %d, quotad needs %d or newer", errTooOld, major, embedded.OldestMajor)
	}
	if err := postgres.CheckSchema(within, conn, migrations.FS); err != nil {
		return err
	}
	if write {
		return postgres.CheckWrites(within, conn)
	}
	return nil
}

const checkURL = "\nCheck --database-url (QUOTAD_DATABASE_URL), that PostgreSQL runs there and that it lets this machine in"

// explain adds to a server's error which server it is and how to resolve the error.
func (db *database) explain(err error) error {
	return fmt.Errorf("%s: %w%s", db.place, err, db.hint(err))
}

func (db *database) hint(err error) string {
	said, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case errors.Is(err, postgres.ErrTransactionPooler):
		return "\nSet pool_mode = session for this database in the pooler, or name PostgreSQL's own address in --database-url (QUOTAD_DATABASE_URL)"
	case errors.Is(err, postgres.ErrOtherSchema) && db.given:
		return "\nMake a new database and name it in --database-url, or drop this one with all its data and make it again"
	case errors.Is(err, postgres.ErrOtherSchema):
		return "\nUse another --data-dir (QUOTAD_DATA_DIR), or stop quotad and delete this one's data with `make db-reset CONFIRM=yes`"
	case !answered && db.given && !errors.Is(err, errTooOld):
		return checkURL
	case !answered:
		return ""
	case strings.HasPrefix(said.Code, "28"):
		return "\nCheck user and password in --database-url (QUOTAD_DATABASE_URL), and the server's pg_hba.conf"
	case said.Code == "3D000":
		return "\nMake the database with `createdb`, or name another in --database-url"
	case said.Code == "42501":
		return "\nThe role needs to own the database, or GRANT CREATE ON SCHEMA public TO it"
	}
	return ""
}

func badDatabaseURL(err error) error {
	if errors.Is(err, postgres.ErrBadURL) {
		return &settingError{"database-url", err}
	}
	return err
}
