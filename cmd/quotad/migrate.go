package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"

	"quotad/internal/postgres"
	"quotad/migrations"
)

type migrateUp struct{ common }

func (m *migrateUp) run(ctx context.Context, p *program) error {
	return m.withDatabase(ctx, p, orNew, func(ctx context.Context, url string, log *slog.Logger) error {
		applied, err := postgres.Migrate(ctx, url, migrations.FS, postgres.MigrateOptions{Logger: log})
		for _, a := range applied {
			fmt.Fprintln(p.stdout, "applied", a.Name)
		}
		if err == nil && len(applied) == 0 {
			fmt.Fprintln(p.stdout, "nothing to do")
		}
		return err
	})
}

type migrateDown struct {
	common
	Yes bool `argument:"" help:"Do it: the tables that the migration made go with all that is in them."`
}

func (m *migrateDown) run(ctx context.Context, p *program) error {
	return m.withDatabase(ctx, p, existing, func(ctx context.Context, url string, log *slog.Logger) error {
		options := postgres.MigrateOptions{Logger: log}
		if !m.Yes {
			return m.warn(ctx, url, options)
		}
		reverted, err := postgres.MigrateDown(ctx, url, migrations.FS, options)
		if err == nil {
			fmt.Fprintln(p.stdout, "took back", reverted.Name)
		}
		return err
	})
}

// warn returns an error with the statements of the migration to be reverted, which show the data that would be
// lost.
func (m *migrateDown) warn(ctx context.Context, url string, options postgres.MigrateOptions) error {
	_, all, err := postgres.MigrateStatus(ctx, url, migrations.FS, options)
	if err != nil {
		return err
	}
	for _, one := range slices.Backward(all) {
		if one.AppliedAt.IsZero() {
			continue
		}
		text, err := fs.ReadFile(migrations.FS, one.Name)
		if err != nil {
			return err
		}
		_, down, _ := strings.Cut(string(text), "-- +goose Down\n")
		return badSetting("yes", "is needed to take back %s, which cannot be undone and deletes all data in what it drops:\n\n%s\nMake a backup with pg_dump, stop every quotad on the database, and run this again with --yes",
			one.Name, down)
	}
	return postgres.ErrNothingToRevert
}

type migrateStatus struct{ common }

func (m *migrateStatus) run(ctx context.Context, p *program) error {
	return m.withDatabase(ctx, p, existing, func(ctx context.Context, url string, log *slog.Logger) error {
		_, all, err := postgres.MigrateStatus(ctx, url, migrations.FS, postgres.MigrateOptions{Logger: log})
		table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "MIGRATION\tAPPLIED")
		for _, one := range all {
			at := "no"
			if !one.AppliedAt.IsZero() {
				at = shown(one.AppliedAt)
			}
			fmt.Fprintf(table, "%s\t%s\n", one.Name, at)
		}
		return errors.Join(err, table.Flush())
	})
}
