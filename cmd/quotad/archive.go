package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/billing/archive"
	"quotad/internal/quota/upkeep"
)

type archiveCmd struct {
	common
	Before  string        `required:"" placeholder:"MONTH" help:"The first month that stays, by its first instant in UTC, such as 2026-01-01."`
	DryRun  bool          `help:"Only say whether it could be done."`
	Timeout time.Duration `default:"1h" help:"How long it may take. What was done by then stays done."`
}

// archived is the output of quotad archive.
type archived struct {
	Before string   `json:"before"`
	DryRun bool     `json:"dry_run"`
	Booked int      `json:"counters_booked"`
	Tables []string `json:"tables"` // detached by this run
	Total  int      `json:"months"` // detached by all runs
	Next   []string `json:"next"`   // commands with which a person can dump and drop the tables
}

// run archives old months and prints a report.
func (a *archiveCmd) run(ctx context.Context, p *program) error {
	if a.Timeout <= 0 {
		return badSetting("timeout", "must be above 0, not %s", a.Timeout)
	}
	before, err := readMonth(a.Before)
	if err != nil {
		return badSetting("before", "must be the first instant of a month in UTC, such as 2026-01-01, not %q", a.Before)
	}
	return a.withPool(ctx, p, func(ctx context.Context, pool *pgxpool.Pool) error {
		ctx, cancel := context.WithTimeout(ctx, a.Timeout)
		defer cancel()
		done := archived{Before: shown(before), DryRun: a.DryRun, Tables: []string{}, Next: []string{}}
		archiver := archive.Archiver{Pool: pool, Now: func(ctx context.Context) (now int64, err error) {
			return now, pool.QueryRow(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`).Scan(&now)
		}}
		if a.DryRun {
			err = archiver.Check(ctx, before)
		} else {
			var report archive.Report
			report, err = archiver.Run(ctx, before)
			done.Booked, done.Total = report.Booked, report.Archive.Months
			for _, month := range report.Months {
				done.Tables = append(done.Tables, month.Tables...)
			}
		}
		if err != nil {
			return explainArchive(err, before)
		}
		for _, table := range done.Tables {
			done.Next = append(done.Next, "pg_dump -Fc -t "+table+" -f "+table+".dump", "psql -c 'DROP TABLE "+table+"'")
		}
		to := json.NewEncoder(p.stdout)
		to.SetIndent("", "  ")
		return to.Encode(done)
	})
}

// explainArchive adds to an error what the operator can do about it.
func explainArchive(err error, before time.Time) error {
	refused, whole := archive.RefusedError(""), (*upkeep.NotWholeError)(nil)
	switch {
	case errors.As(err, &refused), errors.As(err, &whole):
		return fmt.Errorf("nothing was changed. Of what was before %s: %w", shown(before), err)
	}
	return fmt.Errorf("%w. Run it again, with the same --before: it goes on where it ended", err)
}

// readMonth parses a month, a day, or an RFC 3339 time.
func readMonth(text string) (at time.Time, err error) {
	for _, layout := range []string{"2006-01", time.DateOnly, time.RFC3339} {
		if at, err = time.Parse(layout, text); err == nil {
			break
		}
	}
	return at.UTC(), err
}
