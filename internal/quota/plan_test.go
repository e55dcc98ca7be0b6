package quota

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/lane"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/upkeep"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// insertOnly are the statements that look nothing up.
var insertOnly = regexp.MustCompile("^(" + string(locked.InsertRows) + "|" + string(lane.MakeRows) + "|" + string(locked.MakeValues) +
	"|deny|refuse|" + string(locked.IssueReceipts) + ".|" +
	string(locked.OpenHolds) + "|" + string(locked.AddUsage) + "|" + string(locked.AddAdjustments) + "|" + string(locked.AddAudit) + "|" +
	string(locked.AddReached) + ")$")

// sessionStatements are those of a lane's session and of a worker's, poolStatements those of the
// pool's.
func sessionStatements() map[string]string {
	all := make(map[string]string)
	for name, text := range lane.Statements() {
		all[string(name)] = text
	}
	for name, text := range locked.Statements() {
		if name != locked.ReadTurn && name != locked.ReadNewest { // tables of one row
			all[string(name)] = text
		}
	}
	return all
}

func poolStatements() map[string]string {
	return map[string]string{
		"read": readSQL, "usage": usageSQL, "deny": denySQL, "refuse": refuseSQL, "refusal_periods": refusalPeriodsSQL, "open": openSQL,
		"other_batch": otherBatchSQL, "trim_keys": upkeep.TrimKeysSQL, "trim": upkeep.TrimSQL,
		"page": upkeep.PageSQL, "latest": latestSQL, "level_changes": changesSQL, "values": upkeep.ValuesSQL, "clean": upkeep.DeleteSQL,
	}
}

const fillUsageSQL = `
INSERT INTO usage (shard, customer, meter, hour, admitted)
SELECT i % 1024, i, 1 + i % 3, h, 1 FROM generate_series(1, $1) i, generate_series(1, 2) h ON CONFLICT DO NOTHING`

// fillOtherSQL adds a receipt, a hold and an adjustment for each.
var fillOtherSQL = []string{
	`INSERT INTO receipts_0 (shard, customer, key, payload, at, cost, meter, body)
	SELECT i % 1024, i % 1000, md5(i::text)::uuid, 1, 1, 1, 1, 'a' FROM generate_series(1, $1) i ON CONFLICT DO NOTHING`,
	`INSERT INTO holds (shard, customer, meter, attribute, expires_at, at, cost, key, limits)
	SELECT i % 1024, i % 1000, 1 + i % 3, '', i, 1, 1, md5(i::text)::uuid, '{1}' FROM generate_series(1, $1) i ON CONFLICT DO NOTHING`,
	`INSERT INTO refusals (shard, customer, meter, minute, limit_name, first_at, last_at, units, written_at)
	SELECT i % 1024, i % 1000, 1 + i % 3, 60000000 * i::bigint, 'hourly', i, i, 1, 1 FROM generate_series(1, $1) i ON CONFLICT DO NOTHING`,
	`INSERT INTO levels (shard, customer, meter, at, level, integral)
	SELECT i % 1024, i % 1000, -1 - i % 3, i, 1, 0 FROM generate_series(1, $1) i ON CONFLICT DO NOTHING`,
	`INSERT INTO adjustments (shard, customer, meter, hour, key, cost, at, reason)
	SELECT i % 1024, i % 1000, 1 + i % 3, i, md5(i::text)::uuid, 1, 1, '' FROM generate_series(1, $1) i ON CONFLICT DO NOTHING`,
}

// planned is a kind of session, and what it runs.
type planned struct {
	name       string
	statements map[string]string
	session    func() *pgx.Conn
}

// TestPlans: on an empty table, one that was just filled, and a large one that was analyzed, the
// statements reach the hot tables by key look-ups only, also where the session planned them when
// the table was another. A lane's session is asked, and one of the pool for one-time plans and
// for cached ones. Without PoolSettings a session that read three rows scans all of them later.
func TestPlans(t *testing.T) {
	t.Parallel() // it has a database of its own, and asks nothing of the machine's speed
	db, ctx := newTestDB(t), testkit.Context(t)
	kinds := []planned{{"lane", sessionStatements(), func() *pgx.Conn { return db.Session(t) }}}
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		kinds = append(kinds, planned{"pool, " + mode, poolStatements(), func() *pgx.Conn { return db.PoolSession(t, mode) }})
	}
	testPlans(ctx, t, db, kinds)
}

func testPlans(ctx context.Context, t *testing.T, db *testDB, kinds []planned) {
	t.Helper()
	large := quotatest.Sized(20_000, 50_000, 200_000)
	quotatest.MakeMonths(ctx, t, db.Pool)
	for _, table := range []string{"counters", "usage_first", "receipts_0", "holds", "adjustments_first", "refusals", "levels"} {
		db.Exec(ctx, t, "ALTER TABLE "+table+" SET (autovacuum_enabled = off)")
	}
	sessions := make([][]*quotatest.Planned, len(kinds)) // of each kind, one a stage
	for _, stage := range []struct {
		name    string
		rows    int
		analyze bool
	}{
		{"empty", 0, false},
		{"one and analyzed", 1, true},
		{"tiny", 3, false},
		{"tiny and analyzed", 3, true},
		{"fresh", large / 10, false},
		{"large", large, false},
		{"large and analyzed", large, true},
	} {
		db.Fill(ctx, t, quotatest.FillSQL, stage.rows)
		db.Fill(ctx, t, fillUsageSQL, stage.rows)
		for _, sql := range fillOtherSQL {
			db.Fill(ctx, t, sql, stage.rows)
		}
		if stage.analyze {
			db.Exec(ctx, t, "ANALYZE counters, usage, receipts_0, holds, adjustments, refusals, levels")
		}
		for k, kind := range kinds {
			sessions[k] = append(sessions[k], quotatest.PrepareAll(ctx, t, kind.session(), kind.statements))
			for i, s := range sessions[k] {
				s.Check(ctx, t, fmt.Sprintf("%s, %s, a session of stage %d", kind.name, stage.name, i), insertOnly.MatchString)
			}
		}
	}
}

// TestPlanWalk: every other way to a hot table is refused.
func TestPlanWalk(t *testing.T) {
	all := "((c.shard = ANY (ARRAY[g.shard])) AND (c.customer = g.customer) AND (c.meter = 1) AND (c.attribute = g.attribute))"
	lookup := quotatest.PlanNode{Type: "Index Scan", Relation: "counters", IndexCond: all}
	for name, c := range map[string]struct {
		node quotatest.PlanNode
		good bool
	}{
		"look-up": {lookup, true},
		"nested":  {quotatest.PlanNode{Type: "Nested Loop", Plans: []quotatest.PlanNode{{Type: "Function Scan"}, lookup}}, true},
		"a month": {quotatest.PlanNode{
			Type: "Index Scan", Relation: "usage_2027_01",
			IndexCond: "((shard = 1) AND (customer = 1) AND (meter = 1) AND (hour >= 1) AND (hour < 2))",
		}, true},
		"months": {quotatest.PlanNode{Type: "Append", Plans: []quotatest.PlanNode{
			{Type: "Index Scan", Relation: "usage_first", IndexCond: "((shard = 1) AND (customer = 1) AND (meter = 1) AND (hour >= 1) AND (hour < 2))"},
			{Type: "Index Scan", Relation: "usage_default", IndexCond: "((shard = 1) AND (customer = 1) AND (meter = 1) AND (hour >= 1) AND (hour < 2))"},
		}}, false},
		"a month without its hour": {quotatest.PlanNode{
			Type: "Index Scan", Relation: "usage_2027_01",
			IndexCond: "((shard = 1) AND (customer = 1) AND (meter = 1))",
		}, false},
		"usage": {quotatest.PlanNode{
			Type: "Index Scan", Relation: "usage",
			IndexCond: "((shard = 1) AND (customer = 1) AND (meter = 1) AND (hour >= 1) AND (hour < 2))",
		}, true},
		"seq scan":    {quotatest.PlanNode{Type: "Seq Scan", Relation: "counters"}, false},
		"bitmap":      {quotatest.PlanNode{Type: "Bitmap Heap Scan", Relation: "usage"}, false},
		"whole index": {quotatest.PlanNode{Type: "Index Scan", Relation: "counters"}, false},
		"part of key": {quotatest.PlanNode{Type: "Index Scan", Relation: "counters", IndexCond: strings.Replace(all, "c.meter", "c.water", 1)}, false},
		"hash join":   {quotatest.PlanNode{Type: "Hash Join", Plans: []quotatest.PlanNode{lookup}}, false},
		"materialize": {quotatest.PlanNode{
			Type:  "Nested Loop",
			Plans: []quotatest.PlanNode{{Type: "Materialize", Plans: []quotatest.PlanNode{lookup}}},
		}, false},
	} {
		if _, err := c.node.Walk(); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
