package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"

	"quotad/client"
	"quotad/internal/events"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

func scanPlan(row pgx.CollectableRow) (*plans.Plan, error) {
	p := new(plans.Plan)
	var document []byte
	if err := row.Scan(&p.Key, &p.Version, &p.CreatedAt, &document); err != nil {
		return nil, err
	}
	p.CreatedAt = p.CreatedAt.UTC()
	var err error
	p.PlanInput, err = plans.ReadDocument(document)
	return p, err
}

// addVersion returns the document from the database, so that the writer sees the stored plan.
const addVersion = `
	WITH plan AS (
		INSERT INTO plans (key, latest_version) VALUES ($1, $2)
		ON CONFLICT (key) DO UPDATE SET latest_version = excluded.latest_version
		RETURNING id)
	INSERT INTO plan_versions (plan_id, version, apply_to, document, change, created_at, base_every)
	SELECT id, $2, $3, $4, $5, $6, $7 FROM plan
	RETURNING $1::text, version, created_at, document`

// PutPlan writes the first version of a plan, or its next version if the latest version satisfies pre.
// Versions are immutable. The version's limits apply at once to every customer on the plan without a pin.
// With ApplyTo "new", the limits apply only to customers that join the plan from now on. A plan that
// equals the latest version is not written, and wrote is false.
//
// All errors of the plan are returned together, as model.FieldErrors with paths such as
// "limits[1].window". The precondition is checked after the plan (plans.ErrPrecondition,
// plans.ErrPreconditionRequired).
func (s *Store) PutPlan(ctx context.Context, key string, in plans.PlanInput, pre plans.Precondition) (p *plans.Plan, wrote bool, err error) {
	declared, err := s.declaredMeters(ctx, in.MeterKeys())
	if err != nil {
		return nil, false, err
	}
	if in, err = in.Normalize(key, declared); err != nil {
		return nil, false, err
	}
	err = s.Write(ctx, KindPlan, key, func(ctx context.Context, w *Writing) error {
		p, wrote, err = w.putPlan(ctx, key, &in, pre)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return p, wrote, nil
}

// putPlan is PutPlan under the lock, for a plan that has been checked.
func (w *Writing) putPlan(ctx context.Context, key string, in *plans.PlanInput, pre plans.Precondition) (p *plans.Plan, wrote bool, err error) {
	latest, err := one(ctx, w, plans.ErrUnknownPlan, scanPlan, getPlan, key)
	exists := err == nil
	switch {
	case errors.Is(err, plans.ErrUnknownPlan):
		latest = new(plans.Plan)
	case err != nil:
		return nil, false, err
	}
	if err := pre.Check(exists, latest.ETag()); err != nil {
		return nil, false, err
	}
	document, err := in.Document()
	if err != nil {
		return nil, false, err
	}
	if exists {
		if stored, err := latest.Document(); err != nil || bytes.Equal(stored, document) {
			return latest, false, cmp.Or(err, errUnchanged)
		}
		if err := latest.SameIntervalAndCurrency(in); err != nil {
			return nil, false, err
		}
	}
	p, err = one(ctx, w, plans.ErrUnknownPlan, scanPlan, addVersion, key, latest.Version+1, in.ApplyTo, document, w.Number, w.Now, in.BaseEvery)
	if err != nil {
		return nil, false, err
	}
	e := events.Event{Type: events.PlanPublished, At: w.Now.UnixMicro(), Data: client.EventData{Plan: key, PlanVersion: p.Version}}
	if err := events.Write(ctx, w, e); err != nil {
		return nil, false, err
	}
	return p, true, w.Audit(ctx, plans.Audited{Action: plans.AuditWrite(!exists), Target: "plans/" + key, Before: auditPlan(latest), After: auditPlan(p)})
}

// CheckPlan makes the checks of PutPlan and returns the plan with its defaults filled in. bad contains
// all errors of the plan. version is the plan's newest version, or 0 if the plan does not exist.
func (s *Store) CheckPlan(ctx context.Context, key string, in plans.PlanInput) (_ plans.PlanInput, bad model.FieldErrors, version int, err error) {
	declared, err := s.declaredMeters(ctx, in.MeterKeys())
	if err != nil {
		return in, nil, 0, err
	}
	latest, err := s.GetPlan(ctx, key)
	if err != nil && !errors.Is(err, plans.ErrUnknownPlan) {
		return in, nil, 0, err
	}
	in, wrong := in.Normalize(key, declared)
	bad, _ = errors.AsType[model.FieldErrors](wrong)
	if latest != nil {
		more, _ := errors.AsType[model.FieldErrors](latest.SameIntervalAndCurrency(&in))
		bad, version = append(bad, more...), latest.Version
	}
	return in, bad, version, nil
}

const declaredMeters = `SELECT id, key, name, unit FROM meters WHERE key = ANY ($1)`

// declaredMeters returns the kinds of the existing meters among keys, by key. Meters are never removed,
// so the result stays valid until the plan is written.
func (s *Store) declaredMeters(ctx context.Context, keys []string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	rows, _ := s.pool.Query(ctx, declaredMeters, keys)
	found, err := pgx.CollectRows(rows, scanMeter)
	declared := make(map[string]string, len(found))
	for i := range found {
		declared[found[i].Key] = found[i].Kind()
	}
	return declared, Classify(err)
}

const getPlan = `
	SELECT p.key, v.version, v.created_at, v.document
	FROM plans p JOIN plan_versions v ON v.plan_id = p.id AND v.version = p.latest_version
	WHERE p.key = $1`

// GetPlan returns a plan's latest version or the error plans.ErrUnknownPlan.
func (s *Store) GetPlan(ctx context.Context, key string) (*plans.Plan, error) {
	if !plans.ValidKey(key) {
		return nil, plans.ErrUnknownPlan
	}
	return read(ctx, s, plans.ErrUnknownPlan, scanPlan, getPlan, key)
}

const getPlanVersion = `
	SELECT p.key, v.version, v.created_at, v.document
	FROM plans p JOIN plan_versions v ON v.plan_id = p.id
	WHERE p.key = $1 AND v.version = $2::bigint`

// GetPlanVersion returns one version of a plan, or plans.ErrUnknownPlan or plans.ErrUnknownVersion.
func (s *Store) GetPlanVersion(ctx context.Context, key string, version int) (*plans.Plan, error) {
	if !plans.ValidKey(key) {
		return nil, plans.ErrUnknownPlan
	}
	plan, err := read(ctx, s, plans.ErrUnknownVersion, scanPlan, getPlanVersion, key, int64(version))
	if errors.Is(err, plans.ErrUnknownVersion) {
		if _, err := s.GetPlan(ctx, key); err != nil {
			return nil, err
		}
	}
	return plan, err
}

const listPlans = `
	SELECT p.key, v.version, v.created_at, v.document
	FROM plans p JOIN plan_versions v ON v.plan_id = p.id AND v.version = p.latest_version
	WHERE p.key > $1 ORDER BY p.key LIMIT $2`

// ListPlans returns the latest version of each plan, in the order of the plans' keys.
func (s *Store) ListPlans(ctx context.Context, page plans.Page) (*plans.List[*plans.Plan], error) {
	limit, after, err := OpenPage(page, KindPlan, plans.ValidKey)
	if err != nil {
		return nil, err
	}
	found, err := list(ctx, s, scanPlan, listPlans, limit, after)
	if err != nil {
		return nil, err
	}
	return Paged(found, limit, KindPlan, func(p *plans.Plan) string { return p.Key }), nil
}

const listVersions = `
	SELECT p.key, v.version, v.created_at, v.document
	FROM plans p JOIN plan_versions v ON v.plan_id = p.id
	WHERE p.key = $1 AND v.version > $2 ORDER BY v.version LIMIT $3`

// ListVersions returns a plan's versions in ascending order, or the error plans.ErrUnknownPlan.
func (s *Store) ListVersions(ctx context.Context, key string, page plans.Page) (*plans.List[*plans.Plan], error) {
	kind := "version/" + key // a cursor is valid for one plan's list only
	limit, after, err := OpenPage(page, kind, isVersion)
	if err != nil {
		return nil, err
	}
	if _, err := s.GetPlan(ctx, key); err != nil {
		return nil, err
	}
	from, _ := strconv.Atoi(after) // 0 at the start; otherwise isVersion has accepted the text
	found, err := list(ctx, s, scanPlan, listVersions, limit, key, from)
	if err != nil {
		return nil, err
	}
	return Paged(found, limit, kind, func(p *plans.Plan) string { return strconv.Itoa(p.Version) }), nil
}

func isVersion(s string) bool {
	n, err := strconv.ParseInt(s, 10, 32)
	return err == nil && n > 0 && strconv.FormatInt(n, 10) == s
}
