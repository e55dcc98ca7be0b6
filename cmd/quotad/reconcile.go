package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/quota"
)

// errNotOK ends the process with code 1, without a further message.
var errNotOK = errors.New("not ok")

type reconcile struct{ common }

func (r *reconcile) run(ctx context.Context, p *program) error {
	return r.withPool(ctx, p, func(ctx context.Context, pool *pgxpool.Pool) error {
		report, err := quota.Reconcile(ctx, pool)
		if err != nil {
			return err
		}
		to := json.NewEncoder(p.stdout)
		to.SetIndent("", "  ")
		if err := to.Encode(report); err != nil {
			return err
		}
		if !report.OK {
			return errNotOK
		}
		return nil
	})
}
