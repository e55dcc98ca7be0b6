package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
	"quotad/internal/postgres/embedded"
)

// commandPatience is the time for which a command waits for an external database.
const commandPatience = 10 * time.Second

// allowance specifies whether a command may create the embedded server's data.
type allowance bool

const (
	existing allowance = false
	orNew    allowance = true
)

// withDatabase calls do with the URL of the database that the settings name. If --database-url is set, that is
// the external server. Otherwise it is the embedded server in the data directory. If a running quotad has
// already started the embedded server, the command shares it; otherwise withDatabase starts it for this command
// alone.
func (c *common) withDatabase(ctx context.Context, p *program, allow allowance, do func(ctx context.Context, url string, log *slog.Logger) error) (err error) {
	if c.DatabaseURL == "" && allow == existing {
		if !embedded.HasData(c.dataDir()) {
			return fmt.Errorf("there are no data of a quotad in %s: run `quotad serve` once, or say by --data-dir or --database-url where they are", c.dataDir())
		}
	}
	log := c.logger(p.stderr, slog.LevelWarn)
	p.warnUnknown(log)
	db, err := c.connectOrStart(ctx, log)
	if errors.Is(err, embedded.ErrDataDirInUse) {
		// Another quotad uses the data directory, so this command shares that quotad's embedded server.
		if url, running := embedded.RunningURL(c.dataDir()); running {
			db, err = &database{url: url, place: c.place()}, nil
		}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	within, cancel := context.WithTimeout(ctx, commandPatience)
	err = db.greet(within, time.Now().Add(commandPatience), false)
	cancel()
	switch {
	case errors.Is(err, postgres.ErrBadURL):
		return badDatabaseURL(err)
	case err != nil:
		return db.explain(err)
	}
	return do(ctx, db.url, log)
}

// withStore is like withDatabase, for commands that need quotad's tables.
func (c *common) withStore(ctx context.Context, p *program, do func(context.Context, *store.Store) error) error {
	return c.withPool(ctx, p, func(ctx context.Context, pool *pgxpool.Pool) error {
		return do(ctx, store.New(pool, store.Options{}))
	})
}

func (c *common) withPool(ctx context.Context, p *program, do func(context.Context, *pgxpool.Pool) error) error {
	return c.withDatabase(ctx, p, existing, func(ctx context.Context, url string, _ *slog.Logger) error {
		// Statements have no timeout, because a command may read whole tables.
		pool, err := postgres.Open(ctx, url, postgres.PoolOptions{StatementTimeout: -1})
		if err != nil {
			return badDatabaseURL(err)
		}
		defer pool.Close()
		err = do(plans.As(ctx, plans.Actor{By: plans.ActorCommand}), pool)
		const undefinedTable = "42P01"
		if said, ok := errors.AsType[*pgconn.PgError](err); ok && said.Code == undefinedTable {
			return errors.New("the database has no quotad in it yet: run `quotad migrate up`, or `quotad serve` once")
		}
		return err
	})
}
