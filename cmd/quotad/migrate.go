package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

type migrateDown struct{ common }

func (m *migrateDown) run(ctx context.Context, p *program) error {
	return m.withDatabase(ctx, p, existing, func(ctx context.Context, url string, log *slog.Logger) error {
		reverted, err := postgres.MigrateDown(ctx, url, migrations.FS, postgres.MigrateOptions{Logger: log})
		if err == nil {
			fmt.Fprintln(p.stdout, "took back", reverted.Name)
		}
		return err
	})
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
