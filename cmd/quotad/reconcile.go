package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/plans/store"
	"quotad/internal/quota/upkeep"
)

// errNotOK ends the process with code 1, without a further message.
var errNotOK = errors.New("not ok")

type reconcile struct{ common }

func (r *reconcile) run(ctx context.Context, p *program) error {
	return r.withPool(ctx, p, func(ctx context.Context, pool *pgxpool.Pool) error {
		found, err := upkeep.Reconcile(ctx, pool)
		if err != nil {
			return err
		}
		report, err := named(ctx, store.New(pool), found)
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

// report, check and mismatch are the JSON of upkeep's report. They have keys in place of ids.
type report struct {
	OK     bool    `json:"ok"`
	Checks []check `json:"checks"`
}

type check struct {
	Name     string     `json:"name"`
	Rows     int64      `json:"rows"`
	Examples []mismatch `json:"examples"`
}

type mismatch struct {
	Customer string `json:"customer"`
	Meter    string `json:"meter"`
	Charged  int64  `json:"charged"`
	Finished int64  `json:"finished"`
	Running  int64  `json:"running"`
}

// named puts keys in place of a report's ids. An id that has no key stays an id.
func named(ctx context.Context, store *store.Store, found upkeep.Report) (r report, err error) {
	var customers []int64
	var meters []int32
	for _, c := range found.Checks {
		for _, x := range c.Examples {
			customers, meters = append(customers, x.Customer), append(meters, x.Meter)
		}
	}
	customerKeys, err := store.CustomerKeys(ctx, customers)
	if err != nil {
		return r, err
	}
	meterKeys, err := store.MeterKeys(ctx, meters)
	if err != nil {
		return r, err
	}
	r.OK = found.OK
	for _, c := range found.Checks {
		shown := check{c.Name, c.Rows, []mismatch{}}
		for _, x := range c.Examples {
			shown.Examples = append(shown.Examples, mismatch{
				cmp.Or(customerKeys[x.Customer], fmt.Sprintf("id %d", x.Customer)),
				cmp.Or(meterKeys[x.Meter], fmt.Sprintf("id %d", x.Meter)),
				x.Charged, x.Finished, x.Running,
			})
		}
		r.Checks = append(r.Checks, shown)
	}
	return r, nil
}
