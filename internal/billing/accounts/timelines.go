package accounts

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing/timeline"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/postgres"
)

const readBoundaries = `
	SELECT c.id, c.key, c.timezone, c.billing_anchor, c.former_periods, c.cuts, v.document->>'interval', (v.document->>'interval_count')::integer, t.history
	FROM customers c JOIN plans p ON p.id = c.plan_id JOIN plan_versions v ON v.plan_id = p.id AND v.version = p.latest_version
	LEFT JOIN test_clocks t ON t.id = c.test_clock_id
	WHERE c.id = ANY ($1)`

const readTermsRows = `
	SELECT customer_id, change, from_at, at, plan_id, joined_version, coalesce(pinned_version, 0) FROM customer_terms
	WHERE customer_id = ANY ($1) ORDER BY customer_id, change`

const readOwnPrices = `
	SELECT customer_id, change, from_at, at, meter, price FROM customer_prices
	WHERE customer_id = ANY ($1) ORDER BY customer_id, change`

const readPlanVersions = `
	SELECT plan_id, version, apply_to = 'all', change, (extract(epoch FROM created_at) * 1000000)::bigint FROM plan_versions
	WHERE plan_id IN (SELECT plan_id FROM customer_terms WHERE customer_id = ANY ($1))`

// Timelines reads what the periods of customers follow from.
func Timelines(ctx context.Context, q postgres.Querier, customers map[int64]*Customer) (map[int64]*timeline.Timeline, error) {
	ids := slices.Sorted(maps.Keys(customers))
	all := make(map[int64]*timeline.Timeline, len(ids))
	for id, c := range customers {
		all[id] = &timeline.Timeline{StartsAt: c.Account.StartsAt, TrialEnd: c.Account.TrialEndsAt, End: c.Account.EndsAt, Archived: c.Archived}
		if from, to := c.Account.BreakFrom, c.Account.BreakTo; from != nil && to != nil {
			all[id].Break = &timeline.Break{From: *from, To: *to}
		}
		if from, end := c.Account.KnownFrom, c.Account.KnownEnd; from != nil && end != nil {
			all[id].Known = &timeline.Known{Start: *from, End: *end}
		}
	}
	b := new(pgx.Batch)
	queuePeriods(b, ids, all)
	queueTerms(b, ids, all)
	queueOwnPrices(b, ids, all)
	queueVersions(b, ids, all)
	return all, postgres.Send(ctx, q, b)
}

// queueTerms reads what customers were on.
func queueTerms(b *pgx.Batch, ids []int64, all map[int64]*timeline.Timeline) {
	var id int64
	var terms timeline.Terms
	postgres.QueueEach(b, []any{&id, &terms.Change, &terms.From, &terms.At, &terms.PlanID, &terms.Joined, &terms.Pinned}, func() error {
		all[id].Terms = append(all[id].Terms, terms)
		return nil
	}, readTermsRows, ids)
}

// queueOwnPrices reads the prices of customers' own.
func queueOwnPrices(b *pgx.Batch, ids []int64, all map[int64]*timeline.Timeline) {
	var id int64
	var own timeline.OwnPrice
	var price []byte
	postgres.QueueEach(b, []any{&id, &own.Change, &own.From, &own.At, &own.Meter, &price}, func() error {
		if own.Price = nil; price != nil {
			own.Price = new(plans.Price)
			if err := json.Unmarshal(price, own.Price); err != nil {
				return err
			}
		}
		all[id].Prices = append(all[id].Prices, own)
		return nil
	}, readOwnPrices, ids)
}

// queuePeriods reads the boundaries and the clocks.
func queuePeriods(b *pgx.Batch, ids []int64, all map[int64]*timeline.Timeline) {
	var id int64
	var key, zone, anchor string
	var former []byte
	var cuts, clock []int64
	var interval calendar.Interval
	postgres.QueueEach(b, []any{&id, &key, &zone, &anchor, &former, &cuts, &interval.Unit, &interval.Count, &clock}, func() error {
		var before []plans.FormerPeriods
		if len(former) > emptyDocument {
			if err := json.Unmarshal(former, &before); err != nil {
				return err
			}
		}
		periods, err := plans.StoredPeriods(key, zone, anchor, before, slices.Clone(cuts))
		periods.Interval = interval
		all[id].Periods, all[id].Clock = periods, slices.Clone(clock)
		return err
	}, readBoundaries, ids)
}

// queueVersions gives each timeline all versions of all plans that one of them names.
func queueVersions(b *pgx.Batch, ids []int64, all map[int64]*timeline.Timeline) {
	b.Queue(readPlanVersions, ids).Query(func(rows pgx.Rows) error {
		versions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[timeline.Version])
		for _, t := range all {
			t.Versions = versions
		}
		return err
	})
}
