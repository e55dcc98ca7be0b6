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

// GetDraft returns the draft of a plan, or plans.ErrUnknownDraft.
func (s *Store) GetDraft(ctx context.Context, plan string) (*plans.Draft, error) {
	return read(ctx, s, plans.ErrUnknownDraft, scanDraft, getDraft, plan)
}

const latestVersion = `SELECT coalesce((SELECT latest_version FROM plans WHERE key = $1), 0)`

const putDraft = `
	INSERT INTO drafts (plan, document, based_on, revision, saved_at) VALUES ($1, $2, $3, 1, clock_timestamp())
	ON CONFLICT (plan) DO UPDATE SET document = excluded.document, based_on = excluded.based_on,
		revision = drafts.revision + 1, saved_at = excluded.saved_at
	RETURNING plan, document, based_on, revision, saved_at`

// PutDraft writes the draft of a plan, which need not exist, when pre holds for the stored one. A
// new draft is based on the plan's newest version, and a stored one stays on its own. rebase puts
// it on the newest. Errors: plans.ErrPrecondition, plans.ErrPreconditionRequired.
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

// auditDraft is a draft as the audit trail has it: the plan as it was typed; nil: there is none.
func auditDraft(d *plans.Draft) any {
	if d.Document == nil {
		return nil
	}
	return json.RawMessage(d.Document)
}

// DeleteDraft deletes the draft of a plan, or is plans.ErrUnknownDraft.
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

// lockDraft makes the writes of one draft wait for each other, the first one too.
const lockDraft = `SELECT pg_advisory_xact_lock(hashtextextended('quotad draft ' || $1, 0))`

// changeDraft runs do in a transaction that holds the draft's lock. old is nil where there is no
// draft. No node has to hear of drafts, so the transaction draws no change number.
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
