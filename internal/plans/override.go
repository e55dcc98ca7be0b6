package plans

import (
	"fmt"
	"strings"
	"time"

	"quotad/internal/quota/model"
)

// OverrideInput is an override as an admin writes it (PUT /v1/customers/{key}/overrides/{limit}).
type OverrideInput struct {
	Limit     int64      // 0 to model.MaxNumber units
	Burst     *int64     // burst of a token bucket; nil means Limit, whatever burst the plan has
	ExpiresAt *time.Time // by the customer's clock; nil if the override never expires
	Reason    string     // explanation for people; at most 200 characters
}

// Override contains a customer's own numbers, which replace the numbers of one limit of the plan.
type Override struct {
	Name string // name of the limit
	OverrideInput
	// TestClock is the key of the customer's test clock. If TestClock is empty, the customer uses
	// PostgreSQL's time.
	TestClock string
	// InForce is false if the override has no effect. The override may have expired, or the plan version in
	// force may lack the limit or have a limit that these numbers do not fit.
	InForce bool
}

// StoredOverride is an override in the form that hits need. The override applies until ExpiresAt, µs by
// the customer's clock, or until its row is deleted. A sweep.Sweeper deletes expired rows, except for
// customers on a test clock, which may be set back.
type StoredOverride struct {
	Limit     int64  `json:"limit"`
	Burst     *int64 `json:"burst"`
	ExpiresAt *int64 `json:"expires_at"`
}

// Expired reports whether the override has expired at now, µs.
func (o *StoredOverride) Expired(now int64) bool { return o.ExpiresAt != nil && *o.ExpiresAt <= now }

// Over compiles the plan's limit called name with the override's numbers. The errors name the fields of
// the override. The plan must have the limit.
func (o *StoredOverride) Over(p *Plan, name string) (*model.Limit, model.FieldErrors) {
	spec := p.limit(name).Spec
	spec.Limit, spec.Burst = o.Limit, o.Burst
	compiled, bad := model.Compile(spec)
	if bad != nil && spec.Notify != nil { // a bucket that fills too fast for thresholds has no thresholds
		spec.Notify = nil
		compiled, bad = model.Compile(spec)
	}
	for i := range bad {
		if field := bad[i].Field; field != "limit" && field != "burst" {
			bad[i] = model.FieldError{Field: "limit", Detail: "does not fit the plan's " + field + ": " + bad[i].Detail}
		}
	}
	return compiled, bad
}

// InForce reports whether the override has an effect on the plan version in force at now, µs by the
// customer's clock.
func (o *StoredOverride) InForce(p *Plan, name string, now int64) bool {
	if p.limit(name) == nil || o.Expired(now) {
		return false
	}
	_, bad := o.Over(p, name)
	return len(bad) == 0
}

// Show returns the override in the form that is shown to people. c is the override's customer.
func (o *StoredOverride) Show(name string, inForce bool, c *Customer) *Override {
	shown := &Override{Name: name, OverrideInput: OverrideInput{Limit: o.Limit, Burst: o.Burst}, InForce: inForce}
	if o.ExpiresAt != nil {
		at := shownInstant(*o.ExpiresAt)
		shown.ExpiresAt = &at
	}
	if c.Clock != nil {
		shown.TestClock = c.Clock.Key
	}
	return shown
}

// shownInstant converts an instant, µs since the Unix epoch, to the form that is shown to people.
func shownInstant(us int64) time.Time { return time.UnixMicro(us).UTC() }

// Check checks an override against the plan version in force, and its expiry against now, µs by the
// customer's clock. Check trims white space from both ends of the reason. Errors are ErrUnknownLimit and
// model.FieldErrors.
func (in *OverrideInput) Check(p *Plan, name string, now int64) (o StoredOverride, err error) {
	if p.limit(name) == nil {
		return o, unknownLimit(p, name)
	}
	o = StoredOverride{Limit: in.Limit, Burst: in.Burst}
	var bad faults
	_, bad.list = o.Over(p, name)
	bad.name("reason", &in.Reason, false)
	if in.ExpiresAt != nil {
		at := in.ExpiresAt.UnixMicro()
		if o.ExpiresAt = &at; at <= now || in.ExpiresAt.After(lastInstant) {
			bad.add("expires_at", "must be in the future: the customer's clock shows %s", shownInstant(now).Format(time.RFC3339Nano))
		}
	}
	return o, bad.err()
}

// limit returns the plan's limit with the given name, or nil.
func (p *Plan) limit(name string) *Limit {
	for i := range p.Limits {
		if p.Limits[i].Name == name {
			return &p.Limits[i]
		}
	}
	return nil
}

// maxNamed is the greatest number of the plan's limits that an error names.
const maxNamed = 10

// unknownLimit returns an ErrUnknownLimit that names the plan's limits.
func unknownLimit(p *Plan, name string) error {
	there := "no limits"
	if len(p.Limits) > 0 {
		var names []string
		for i := range p.Limits[:min(len(p.Limits), maxNamed)] {
			names = append(names, Shorten(p.Limits[i].Name))
		}
		if there = strings.Join(names, ", "); len(p.Limits) > maxNamed {
			there += fmt.Sprintf(" and %d more", len(p.Limits)-maxNamed)
		}
	}
	return fmt.Errorf("%w: version %d of plan %s, which is in force for it, has %s. Override one of these, or write a version of the plan that has %s",
		ErrUnknownLimit, p.Version, Shorten(p.Key), there, Shorten(name))
}
