package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
)

const listSettings = `SELECT name, value FROM settings ORDER BY name`

// Settings returns the stored shared settings in the order of their names.
func (s *Store) Settings(ctx context.Context) ([]plans.Setting, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	rows, _ := s.pool.Query(ctx, listSettings)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[plans.Setting])
	return all, Classify(err)
}

// proposeSettings inserts rows in the order of the key, which prevents a deadlock between nodes that
// start at once.
const proposeSettings = `
	INSERT INTO settings (name, value) SELECT * FROM unnest($1::text[], $2::text[]) AS s(name, value) ORDER BY name
	ON CONFLICT (name) DO NOTHING`

// ProposeSettings writes the settings that have not been written yet, and returns all stored settings.
// All nodes that propose settings therefore get the same values.
func (s *Store) ProposeSettings(ctx context.Context, proposed []plans.Setting) ([]plans.Setting, error) {
	within, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	var names, values []string
	for _, p := range proposed {
		names, values = append(names, p.Name), append(values, p.Value)
	}
	if _, err := s.pool.Exec(within, proposeSettings, names, values); err != nil {
		return nil, Classify(err)
	}
	return s.Settings(ctx)
}

const getSetting = `SELECT value FROM settings WHERE name = $1 FOR UPDATE`

const setSetting = `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`

var errUnset = errors.New("no such setting")

// SetSetting writes one setting. Serving nodes do not learn of the change, so no node may serve
// meanwhile, see postgres.ClaimSchema.
func (s *Store) SetSetting(ctx context.Context, set plans.Setting) error {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	return transact(ctx, s.pool, func(tx pgx.Tx) error {
		var before any
		switch old, err := one(ctx, tx, errUnset, pgx.RowTo[string], getSetting, set.Name); {
		case err == nil:
			before = settingAudit{old}
		case !errors.Is(err, errUnset):
			return err
		}
		if _, err := tx.Exec(ctx, setSetting, set.Name, set.Value); err != nil {
			return err
		}
		return Audit(ctx, tx, plans.Audited{
			Action: plans.AuditWrite(before == nil), Target: "settings/" + set.Name, Before: before, After: settingAudit{set.Value},
		})
	})
}
