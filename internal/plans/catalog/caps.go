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

// A cap is so many units of one billing period, by what prices that period. Billing knows the period that
// runs and some that follow. So terms end with the period, as they do with an override, and the next
// terms find their caps in memory.

// capTerms gives terms that nobody else has yet the caps that count at their instant. before are the terms
// that the customer had; nil: none.
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
			t.caps, err = before.caps, nil // another plan may count by now; its prices are not known
		}
		if err != nil {
			return err
		}
	}
	t.pickCap()
	return nil
}

// pickCap chooses the caps that count at the terms' instant, and lets the terms end where they do.
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

// capAt returns the caps that count at an instant; nil: none that are known.
func (t *terms) capAt(at int64) *plans.CapPeriod {
	for i := range t.caps {
		// A test clock may have been set back before a period that has begun.
		if p := &t.caps[i]; at < p.End && (at >= p.Start || p.Begun) {
			return p
		}
	}
	return nil
}

// capsName names a read of caps that is no older than what the terms are made of.
func (t *terms) capsName() string {
	name := fmt.Sprintf("caps %d as of %d, plan %d", t.entry.id, t.entry.asOf, t.plan.asOf)
	if t.clock != nil {
		name += fmt.Sprintf(", clock %d", t.clock.asOf)
	}
	return name
}

// endBy lets terms end at an instant, unless a test clock says when.
func (t *terms) endBy(at int64) {
	if t.clock == nil && (t.ends == 0 || at < t.ends) {
		t.ends = at
	}
}

// capsServe reports whether what was read for terms serves others of the same customer, too: nothing that
// prices a period has changed since, and the periods hold now.
func (t *terms) capsServe(other *terms, now int64) bool {
	return t.entry == other.entry && t.plan == other.plan && t.clock == other.clock &&
		t.plan.valid() && (t.clock == nil || t.clock.valid()) && holds(t.caps, now)
}

// holds reports whether periods say what counts at an instant.
func holds(periods []plans.CapPeriod, now int64) bool {
	return len(periods) > 0 && now < periods[len(periods)-1].End
}

// withCap returns the limits of a meter, and its cap of a period after them; period nil: there is none.
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

// capOf is the cap of a meter in the period that runs; nil: it has none.
func (t *terms) capOf(meter string) *plans.Cap {
	if t.cap == nil {
		return nil
	}
	if is, capped := t.cap.Caps[meter]; capped {
		return &is
	}
	return nil
}
