package store

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
)

func scanDraft(row pgx.CollectableRow) (*plans.Draft, error) {
	d := new(plans.Draft)
	err := row.Scan(&d.Key, &d.Document, &d.BasedOn, &d.Revision, &d.SavedAt)
	d.SavedAt = d.SavedAt.UTC()
	return d, err
}

const getDraft = `SELECT plan, document, based_on, revision, saved_at FROM drafts WHERE plan = $1`

// GetDraft returns the draft of a plan or the error plans.ErrUnknownDraft.
func (s *Store) GetDraft(ctx context.Context, plan string) (*plans.Draft, error) {
	return read(ctx, s, plans.ErrUnknownDraft, scanDraft, getDraft, plan)
}

const latestVersion = `SELECT coalesce((SELECT latest_version FROM plans WHERE key = $1), 0)`

const putDraft = `
	INSERT INTO drafts (plan, document, based_on, revision, saved_at) VALUES ($1, $2, $3, 1, clock_timestamp())
	ON CONFLICT (plan) DO UPDATE SET document = excluded.document, based_on = excluded.based_on,
		revision = drafts.revision + 1, saved_at = excluded.saved_at
	RETURNING plan, document, based_on, revision, saved_at`

// PutDraft writes the draft of a plan, which need not exist, if the stored draft satisfies pre. A new
// draft is based on the plan's newest version, and an existing draft keeps its base. If rebase is true,
// the draft is based on the newest version. Errors: plans.ErrPrecondition, plans.ErrPreconditionRequired.
func (s *Store) PutDraft(ctx context.Context, plan string, document []byte, rebase bool, pre plans.Precondition) (d *plans.Draft, created bool, err error) {
	err = s.changeDraft(ctx, plan, func(ctx context.Context, tx pgx.Tx, old *plans.Draft) error {
		if created = old == nil; created {
			old = new(plans.Draft)
		}
		if err := pre.Check(!created, old.ETag()); err != nil {
			return err
		}
		basedOn := old.BasedOn
		if created || rebase {
			if err := tx.QueryRow(ctx, latestVersion, plan).Scan(&basedOn); err != nil {
				return err
			}
		}
		if d, err = one(ctx, tx, plans.ErrUnknownDraft, scanDraft, putDraft, plan, string(document), basedOn); err != nil {
			return err
		}
		return Audit(ctx, tx, plans.Audited{Action: plans.AuditWrite(created), Target: draftTarget(plan), Before: auditDraft(old), After: auditDraft(d)})
	})
	if err != nil {
		return nil, false, err
	}
	return d, created, nil
}

func draftTarget(plan string) string { return "plans/" + plan + "/draft" }

// auditDraft returns the draft for the audit trail, which is the plan as it was typed, or nil if there is
// no draft.
func auditDraft(d *plans.Draft) any {
	if d.Document == nil {
		return nil
	}
	return json.RawMessage(d.Document)
}

// DeleteDraft deletes the draft of a plan or returns plans.ErrUnknownDraft.
func (s *Store) DeleteDraft(ctx context.Context, plan string) error {
	return s.changeDraft(ctx, plan, func(ctx context.Context, tx pgx.Tx, old *plans.Draft) error {
		if old == nil {
			return plans.ErrUnknownDraft
		}
		if _, err := tx.Exec(ctx, `DELETE FROM drafts WHERE plan = $1`, plan); err != nil {
			return err
		}
		return Audit(ctx, tx, plans.Audited{Action: plans.AuditDelete, Target: draftTarget(plan), Before: auditDraft(old)})
	})
}

// lockDraft serializes the writes of one draft, including the write that creates it.
const lockDraft = `SELECT pg_advisory_xact_lock(hashtextextended('quotad draft ' || $1, 0))`

// changeDraft runs do in a transaction that locks the draft. old is nil if there is no draft. Nodes need
// not learn of drafts, so the transaction takes no change number.
func (s *Store) changeDraft(ctx context.Context, plan string, do func(ctx context.Context, tx pgx.Tx, old *plans.Draft) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.Within())
	defer cancel()
	return transact(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockDraft, plan); err != nil {
			return err
		}
		old, err := one(ctx, tx, plans.ErrUnknownDraft, scanDraft, getDraft, plan)
		if errors.Is(err, plans.ErrUnknownDraft) {
			old, err = nil, nil
		}
		if err != nil {
			return err
		}
		return do(ctx, tx, old)
	})
}
