package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// A cap is a number of units in one billing period, and depends on the prices of that period. Billing
// computes the caps of the running period and of some later periods. Terms therefore expire with the
// period, as they expire with an override, and the next terms find their caps in memory.

// capTerms adds caps to new terms that are not shared yet. The caps are the caps in force at the terms'
// instant. before contains the customer's previous terms, or nil.
func (c *Catalog) capTerms(ctx context.Context, m *memory, t, before *terms) error {
	if c.options.Caps == nil {
		return nil
	}
	now := t.entry.instant(t.clock)
	if before != nil && before.capsServe(t, now) {
		t.caps = before.caps
	} else {
		var err error
		t.caps, err = fly(ctx, c.options.Within, &m.flights, t.capsName(), func(ctx context.Context) ([]plans.CapPeriod, error) {
			return c.options.Caps(ctx, c.pool, t.entry.id)
		})
		if errors.Is(err, session.ErrUnavailable) && before != nil && holds(before.caps, now) {
			t.caps, err = before.caps, nil // another plan may apply by now, whose prices are unknown
		}
		if err != nil {
			return err
		}
	}
	t.pickCap()
	return nil
}

// pickCap selects the caps that apply at the terms' instant, and ends the terms when these caps end.
func (t *terms) pickCap() {
	now := t.entry.instant(t.clock)
	if t.cap = t.capAt(now); t.cap != nil {
		t.endBy(t.cap.End)
		return
	}
	for i := range t.caps {
		if now < t.caps[i].Start {
			t.endBy(t.caps[i].Start)
			return
		}
	}
}

// capAt returns the caps that apply at an instant, or nil if no such caps are known.
func (t *terms) capAt(at int64) *plans.CapPeriod {
	for i := range t.caps {
		// A test clock may have been set back to an instant before a period that has begun.
		if p := &t.caps[i]; at < p.End && (at >= p.Start || p.Begun) {
			return p
		}
	}
	return nil
}

// capsName returns the name under which concurrent reads of the same caps are shared. The name contains the
// change numbers of all parts of the terms, so terms never share a read with older terms.
func (t *terms) capsName() string {
	name := fmt.Sprintf("caps %d as of %d, plan %d", t.entry.id, t.entry.asOf, t.plan.asOf)
	if t.clock != nil {
		name += fmt.Sprintf(", clock %d", t.clock.asOf)
	}
	return name
}

// endBy ends the terms at an instant, unless a test clock determines their end.
func (t *terms) endBy(at int64) {
	if t.clock == nil && (t.ends == 0 || at < t.ends) {
		t.ends = at
	}
}

// capsServe reports whether the caps that were read for these terms are also valid for other terms of the
// same customer. They are valid if nothing that prices a period has changed since, and the periods
// include now.
func (t *terms) capsServe(other *terms, now int64) bool {
	return t.entry == other.entry && t.plan == other.plan && t.clock == other.clock &&
		t.plan.valid() && (t.clock == nil || t.clock.valid()) && holds(t.caps, now)
}

// holds reports whether the periods determine the caps at an instant.
func holds(periods []plans.CapPeriod, now int64) bool {
	return len(periods) > 0 && now < periods[len(periods)-1].End
}

// withCap returns the limits of a meter, followed by its cap in the period. If period is nil, there is no
// cap.
func withCap(period *plans.CapPeriod, m *planMeter, limits []*model.Limit) []*model.Limit {
	if period == nil {
		return limits
	}
	is := period.Caps[m.key]
	if is.Units == nil || model.IsLevel(m.id) {
		return limits
	}
	return append(slices.Clip(limits), model.NewCap(*is.Units, is.AmountMinor, period.Start, period.End))
}

// capOf returns the cap of a meter in the running period, or nil if the meter has no cap.
func (t *terms) capOf(meter string) *plans.Cap {
	if t.cap == nil {
		return nil
	}
	if is, capped := t.cap.Caps[meter]; capped {
		return &is
	}
	return nil
}
