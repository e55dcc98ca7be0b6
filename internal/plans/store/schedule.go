package store

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// maxFormer is how many former periods are kept. Beyond that the oldest are dropped: their
// time then counts by the periods after them.
const maxFormer = 100

const setFormer = `UPDATE customers SET former_periods = $2 WHERE id = $1`

// reschedule makes new billing periods count: those of another anchor, timezone or plan's
// interval. They begin with the next period. With endNow they begin at once, if anything about
// the billing has changed: the running period then ends now. old is the customer before the
// write and c after it.
func (w *Writing) reschedule(ctx context.Context, old, c *plans.Customer, endNow bool) error {
	was, err := w.periodsOf(ctx, old)
	if err != nil {
		return err
	}
	is, err := w.periodsOf(ctx, c)
	if err != nil {
		return err
	}
	same := was.Anchor == is.Anchor && was.Interval == is.Interval && old.Timezone == c.Timezone
	endNow = endNow && (!same || old.Plan != c.Plan || old.EffectiveVersion != c.EffectiveVersion)
	if same && !endNow {
		return nil
	}
	now := w.Now.UnixMicro()
	if old.Clock != nil {
		now = old.Clock.Now
	}
	former := slices.Clone(old.Former)
	last := len(former) - 1
	switch waiting := last >= 0 && former[last].Until > now; {
	case waiting && endNow:
		if former[last].Until, err = w.endOf(ctx, c.ID, now); err != nil {
			return err
		}
	case waiting: // the new periods replace others that had not begun
	default:
		_, until := was.Period(now)
		if endNow {
			if until, err = w.endOf(ctx, c.ID, now); err != nil {
				return err
			}
		}
		former = append(former, plans.FormerPeriods{
			Until: until, Timezone: old.Timezone, Anchor: old.BillingAnchor, Interval: string(was.Interval.Unit), Count: was.Interval.Count,
		})
	}
	if former = former[max(0, len(former)-maxFormer):]; slices.Equal(former, old.Former) {
		return nil
	}
	c.Former = former
	stored, err := json.Marshal(former)
	if err != nil {
		return err
	}
	_, err = w.Exec(ctx, setFormer, c.ID, stored)
	return err
}

// lastCharged finds the last charge from an hour on. Units belong to the period in which their
// hour starts. Meters are few, and the customer's own counter of each is found by its key.
const lastCharged = `
	SELECT coalesce(max(c.at), 0) FROM meters m, LATERAL (
		SELECT at FROM counters
		WHERE shard = $1 AND customer = $2 AND meter = m.id AND attribute = '' AND hour >= $3 OFFSET 0) c`

// endOf is the instant at which a running period ends that is to end now. Usually that is now.
// But units may be charged already in an hour that starts now or later, on a test clock that
// shows a full hour or was set back. Then the period ends just after them, so that they stay
// in it.
func (w *Writing) endOf(ctx context.Context, customer, now int64) (int64, error) {
	if err := session.ByKey(ctx, w); err != nil {
		return 0, err
	}
	last, err := one(ctx, w, plans.ErrUnknownCustomer, pgx.RowTo[int64], lastCharged, model.Shard(customer), customer, now)
	return max(now, last+1), err
}

// periodsOf are a customer's periods on the version of its plan that is in force.
func (w *Writing) periodsOf(ctx context.Context, c *plans.Customer) (calendar.Periods, error) {
	plan, err := one(ctx, w, plans.ErrUnknownVersion, scanPlan, getPlanVersion, c.Plan, int64(c.EffectiveVersion))
	if err != nil {
		return calendar.Periods{}, err
	}
	return c.Periods(plan)
}
