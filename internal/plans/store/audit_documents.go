package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// The documents that the audit trail stores for each type of object, in the form that the API shows.

type customerAudit struct {
	Name          string            `json:"name"`
	Plan          string            `json:"plan"`
	PlanVersion   *int              `json:"plan_version"`
	Timezone      string            `json:"timezone"`
	BillingAnchor string            `json:"billing_anchor"`
	Metadata      map[string]string `json:"metadata"`
	Features      map[string]any    `json:"features"`
	TestClock     *string           `json:"test_clock"`
	Anonymous     bool              `json:"anonymous"`
	ArchivedAt    *time.Time        `json:"archived_at"`
	ErasedAt      *time.Time        `json:"erased_at"`
}

func auditCustomer(c *plans.Customer) any {
	return customerAudit{
		c.Name, c.Plan, c.PlanVersion, c.Timezone, c.BillingAnchor, c.Metadata, c.Features, c.TestClock, c.Anonymous, c.ArchivedAt, c.ErasedAt,
	}
}

type suspensionAudit struct {
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// auditSuspension returns a suspension's document, or nil if s is nil.
func auditSuspension(s *plans.Suspension) any {
	if s == nil {
		return nil
	}
	return suspensionAudit{s.Reason, s.At}
}

type scheduledAudit struct {
	Plan    string    `json:"plan"`
	Version int       `json:"plan_version"`
	At      time.Time `json:"at"`
}

// auditScheduled returns a scheduled change's document, or nil if s is nil.
func auditScheduled(s *plans.ScheduledChange) any {
	if s == nil {
		return nil
	}
	return scheduledAudit{s.Plan, s.PlanVersion, s.At}
}

type meterAudit struct {
	Unit string `json:"unit"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

func auditMeter(m plans.Meter) any { return meterAudit{m.Unit, m.Name, m.Kind()} }

type keyAudit struct {
	Name      string      `json:"name"`
	Scope     plans.Scope `json:"scope"`
	ExpiresAt *time.Time  `json:"expires_at"`
}

func auditKey(k plans.Key) any { return keyAudit{k.Name, k.Scope, k.ExpiresAt} }

type clockAudit struct {
	Now time.Time `json:"now"`
}

func auditClock(c model.TestClock) any { return clockAudit{time.UnixMicro(c.Now).UTC()} }

type overrideAudit struct {
	Limit     int64      `json:"limit"`
	Burst     *int64     `json:"burst,omitempty"`
	ExpiresAt *time.Time `json:"expires_at"`
	Reason    string     `json:"reason,omitempty"`
}

// An overrideRow is a complete override, including the reason, which hits do not need.
type overrideRow struct {
	plans.StoredOverride

	Reason string
}

func auditOverride(o overrideRow) any {
	shown := overrideAudit{Limit: o.Limit, Burst: o.Burst, Reason: o.Reason}
	if o.ExpiresAt != nil {
		at := time.UnixMicro(*o.ExpiresAt).UTC()
		shown.ExpiresAt = &at
	}
	return shown
}

const getOverride = `SELECT "limit", burst, expires_at, reason FROM overrides WHERE customer_id = $1 AND limit_name = $2`

// auditedOverride returns the document of a customer's override of a limit, or nil if there is no
// override.
func (w *Writing) auditedOverride(ctx context.Context, customer int64, limit string) (any, error) {
	o, err := one(ctx, w, plans.ErrUnknownOverride, pgx.RowToStructByPos[overrideRow], getOverride, customer, limit)
	if errors.Is(err, plans.ErrUnknownOverride) {
		return nil, nil
	}
	return auditOverride(o), err
}

type settingAudit struct {
	Value string `json:"value"`
}

// auditPlan returns a plan version's document, or nil if p is no stored version.
func auditPlan(p *plans.Plan) any {
	if p.Version == 0 {
		return nil
	}
	return struct {
		Version int `json:"version"`
		plans.PlanInput
	}{p.Version, p.PlanInput}
}

// unless returns the document, or nil if the object was created and so had no earlier state.
func unless(created bool, document any) any {
	if created {
		return nil
	}
	return document
}
