package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
)

func scanMeter(row pgx.CollectableRow) (plans.Meter, error) {
	var m plans.Meter
	return m, row.Scan(&m.ID, &m.Key, &m.Name, &m.Unit)
}

// putMeter makes the id of a level meter negative.
const putMeter = `
	INSERT INTO meters (id, key, name, unit, change) OVERRIDING SYSTEM VALUE
	SELECT nextval(pg_get_serial_sequence('meters', 'id')) * CASE WHEN $5 THEN -1 ELSE 1 END, $1, $2, $3, $4
	ON CONFLICT (key) DO UPDATE SET name = excluded.name, unit = excluded.unit, change = excluded.change
	RETURNING id, key, name, unit`

// PutMeter declares a meter or changes its unit or name. created is true for a new meter. Writing the
// stored values again changes nothing.
func (s *Store) PutMeter(ctx context.Context, key string, in plans.PutMeterInput) (m plans.Meter, created bool, err error) {
	if err := in.Check(key); err != nil {
		return plans.Meter{}, false, err
	}
	err = s.Write(ctx, KindMeter, key, func(ctx context.Context, w *Writing) error {
		old, err := one(ctx, w, plans.ErrUnknownMeter, scanMeter, getMeter, key)
		created = errors.Is(err, plans.ErrUnknownMeter)
		if err == nil && in.Kind != "" && in.Kind != old.Kind() {
			return plans.ErrKind
		}
		if m = old; err == nil && m.Unit == in.Unit && m.Name == in.Name {
			return errUnchanged
		} else if err != nil && !created {
			return err
		}
		if m, err = one(ctx, w, plans.ErrUnknownMeter, scanMeter, putMeter, key, in.Name, in.Unit, w.Number, in.Kind == plans.KindLevel); err != nil {
			return err
		}
		return w.Audit(ctx, plans.Audited{
			Action: plans.AuditWrite(created), Target: "meters/" + key, Before: unless(created, auditMeter(old)), After: auditMeter(m),
		})
	})
	if err != nil {
		return plans.Meter{}, false, err
	}
	return m, created, nil
}

const getMeter = `SELECT id, key, name, unit FROM meters WHERE key = $1`

// GetMeter returns a meter or the error plans.ErrUnknownMeter.
func (s *Store) GetMeter(ctx context.Context, key string) (plans.Meter, error) {
	if !plans.ValidKey(key) {
		return plans.Meter{}, plans.ErrUnknownMeter
	}
	return read(ctx, s, plans.ErrUnknownMeter, scanMeter, getMeter, key)
}

const listMeters = `SELECT id, key, name, unit FROM meters WHERE key > $1 ORDER BY key LIMIT $2`

// ListMeters returns the meters in the order of their keys.
func (s *Store) ListMeters(ctx context.Context, page plans.Page) (*plans.List[plans.Meter], error) {
	limit, after, err := OpenPage(page, KindMeter, plans.ValidKey)
	if err != nil {
		return nil, err
	}
	meters, err := list(ctx, s, scanMeter, listMeters, limit, after)
	if err != nil {
		return nil, err
	}
	return Paged(meters, limit, KindMeter, func(m plans.Meter) string { return m.Key }), nil
}

const meterKeys = `SELECT id, key FROM meters WHERE id = ANY ($1)`

// MeterKeys returns the keys of the existing meters among ids, by id.
func (s *Store) MeterKeys(ctx context.Context, ids []int32) (map[int32]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	keys := make(map[int32]string, len(ids))
	var id int32
	var key string
	rows, _ := s.pool.Query(ctx, meterKeys, ids)
	_, err := pgx.ForEachRow(rows, []any{&id, &key}, func() error {
		keys[id] = key
		return nil
	})
	return keys, Classify(err)
}

const setReturning = `UPDATE meters SET returns = true, change = $2 WHERE key = $1 AND NOT returns`

// SetReturning permanently marks a meter whose units can be returned by other means than time, such as
// refunds. The mark counts as quotad's own change, whoever returned units.
func (s *Store) SetReturning(ctx context.Context, key string) error {
	return s.Write(plans.Itself(ctx), KindMeter, key, func(ctx context.Context, w *Writing) error {
		tag, err := w.Exec(ctx, setReturning, key, w.Number)
		if err == nil && tag.RowsAffected() == 0 {
			return errUnchanged
		}
		return err
	})
}

const readMeterIDs = `SELECT key, id FROM meters WHERE key = ANY ($1)`

// MeterIDs returns the ids of the existing meters among keys, by key.
func MeterIDs(ctx context.Context, q querier, keys []string) (map[string]int32, error) {
	ids := make(map[string]int32, len(keys))
	var key string
	var id int32
	rows, _ := q.Query(ctx, readMeterIDs, keys)
	_, err := pgx.ForEachRow(rows, []any{&key, &id}, func() error {
		ids[key] = id
		return nil
	})
	return ids, err
}

// MeterIDs calls the function MeterIDs with the store's pool.
func (s *Store) MeterIDs(ctx context.Context, keys []string) (map[string]int32, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	ids, err := MeterIDs(ctx, s.pool, keys)
	return ids, Classify(err)
}
