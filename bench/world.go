package main

import (
	"context"
	"fmt"
	"strconv"
)

// meter is the one that all plans limit.
const meter = "requests"

// A set is customers on one plan.
type set struct {
	plan      string
	customers int
}

// sets are the customers of the rows, by name.
var sets = map[string]set{
	"one":        {plan: "one", customers: 10_000},
	"two":        {plan: "two", customers: 10_000},
	"four":       {plan: "four", customers: 10_000},
	"hot":        {plan: "two", customers: 1},
	"full1":      {plan: "full", customers: 1},
	"full":       {plan: "full", customers: 10_000},
	"reserve":    {plan: "two", customers: 10_000},
	"per":        {plan: "per", customers: 1},
	"fixed":      {plan: "fixed", customers: 10_000},
	"first":      {plan: "first", customers: 10_000},
	"month":      {plan: "month", customers: 10_000},
	"period":     {plan: "period", customers: 10_000},
	"sliding":    {plan: "sliding", customers: 10_000},
	"log":        {plan: "log", customers: 10_000},
	"bucket":     {plan: "bucket", customers: 10_000},
	"allocation": {plan: "allocation", customers: 10_000},
	"million":    {plan: "two", customers: 1_000_000},
}

// The limits of the plans. Those of rows that are admitted are never reached; that of full
// is used up by the hit that each customer has had before its row begins.
const (
	hourly  = `{"name":"hourly","meter":"requests","algorithm":"fixed_window","limit":999999999,"window":"1h"}`
	daily   = `{"name":"daily","meter":"requests","algorithm":"token_bucket","limit":86400000,"window":"1d"}`
	minute  = `{"name":"minute","meter":"requests","algorithm":"sliding_window","limit":99999999,"window":"1m"}`
	monthly = `{"name":"monthly","meter":"requests","algorithm":"fixed_window","limit":99999999999,"window":"calendar_month"}`
)

var plans = map[string]string{
	"one":        hourly,
	"two":        hourly + "," + daily,
	"four":       hourly + "," + daily + "," + minute + "," + monthly,
	"full":       `{"name":"once","meter":"requests","algorithm":"fixed_window","limit":1,"window":"100d"},` + daily,
	"per":        hourly + `,{"name":"address","meter":"requests","algorithm":"fixed_window","limit":999999999,"window":"1h","per":"ip"}`,
	"fixed":      hourly,
	"first":      `{"name":"first","meter":"requests","algorithm":"fixed_window","align":"first_hit","limit":999999999,"window":"1h"}`,
	"month":      monthly,
	"period":     `{"name":"period","meter":"requests","algorithm":"fixed_window","limit":99999999999,"window":"billing_period"}`,
	"sliding":    `{"name":"sliding","meter":"requests","algorithm":"sliding_window","limit":999999999,"window":"1h"}`,
	"log":        `{"name":"log","meter":"requests","algorithm":"sliding_log","limit":1000,"window":"10s"}`,
	"bucket":     daily,
	"allocation": `{"name":"seats","meter":"requests","algorithm":"allocation","limit":999999999999}`,
}

// Customers' keys are their set's name and a number of always the same width, so that
// requests of a row are of one length.
const firstNumber = 10_000_000

func customerKey(set string, i int) string { return set + "-" + strconv.Itoa(firstNumber+i) }

// manyCustomers is how many are made and hit within seconds. What more of them take of
// memory and disk is looked at, too.
const manyCustomers = 10_000

// makeSet makes the plan and the customers of a set and hits each of them, once.
func (b *bench) makeSet(ctx context.Context, name string) error {
	if b.made[name] {
		return nil
	}
	s := sets[name]
	if !b.made["plan "+s.plan] {
		if err := b.service.put(ctx, "/v1/plans/"+s.plan,
			`{"name":"Bench","currency":"USD","interval":"month","base_price_minor":0,"limits":[`+plans[s.plan]+`]}`); err != nil {
			return err
		}
		b.made["plan "+s.plan] = true
	}
	if err := b.insertCustomers(ctx, name, s); err != nil {
		return fmt.Errorf("make customers %s: %w", name, err)
	}
	if s.customers > manyCustomers {
		if err := b.fill(ctx, name, s.customers); err != nil {
			return fmt.Errorf("hit each of customers %s: %w", name, err)
		}
	} else if err := b.hitEach(ctx, b.service.nodes[0], name, 0, s.customers); err != nil {
		return fmt.Errorf("hit each of customers %s: %w", name, err)
	}
	b.made[name] = true
	return nil
}

// meetAll hits each customer of a set once on each node, where there are several: those
// that were started for a row know nobody.
func (b *bench) meetAll(ctx context.Context, set string) error {
	if len(b.service.nodes) == 1 {
		return nil
	}
	for _, n := range b.service.nodes {
		if err := b.hitEach(ctx, n, set, 0, sets[set].customers); err != nil {
			return fmt.Errorf("hit each of customers %s on %s: %w", set, n.name, err)
		}
	}
	return nil
}

// insertCustomersSQL does what that many PUTs would.
const insertCustomersSQL = `
INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change)
SELECT $1 || '-' || ($2::bigint + i), 'Bench', p.id, p.latest_version, 'UTC', '2026-01-01T00:00:00', n.number
FROM plans p, change_number n, generate_series(0, $3::bigint - 1) i
WHERE p.key = $4`

func (b *bench) insertCustomers(ctx context.Context, name string, s set) error {
	tag, err := b.service.db.Exec(ctx, insertCustomersSQL, name, firstNumber, s.customers, s.plan)
	if err != nil {
		return err
	}
	if got := tag.RowsAffected(); got != int64(s.customers) {
		return fmt.Errorf("%d rows written, not %d", got, s.customers)
	}
	_, err = b.service.db.Exec(ctx, `ANALYZE customers`)
	return err
}
