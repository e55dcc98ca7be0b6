package quota

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
	"quotad/internal/postgres/pgtest"
	"quotad/internal/quota/lane"
	"quotad/internal/quota/ledger"
	"quotad/internal/quota/quotatest"
	"quotad/internal/quota/session"
	"quotad/internal/quota/upkeep"
)

// insertOnly are the statements that look nothing up.
var insertOnly = regexp.MustCompile("^(" + string(ledger.InsertRows) + "|" + string(lane.MakeRows) + "|" + string(ledger.MakeValues) + "|deny|" + string(ledger.IssueReceipts) + ".|" +
	string(ledger.OpenHolds) + "|" + string(ledger.AddUsage) + "|" + string(ledger.AddAdjustments) + ")$")

// sessionStatements are those of a lane's session and of a ledger's, poolStatements those of the
// pool's.
func sessionStatements() map[string]string {
	all := make(map[string]string)
	for name, text := range lane.Statements() {
		all[string(name)] = text
	}
	for name, text := range ledger.Statements() {
		if name != ledger.ReadTurn { // a table of one row
			all[string(name)] = text
		}
	}
	return all
}

func poolStatements() map[string]string {
	return map[string]string{
		"read": readSQL, "usage": usageSQL, "deny": denySQL,
		"page": upkeep.PageSQL, "values": upkeep.ValuesSQL, "clean": upkeep.DeleteSQL,
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
	`INSERT INTO adjustments (shard, customer, meter, hour, key, cost, at, reason)
	SELECT i % 1024, i % 1000, 1 + i % 3, i, md5(i::text)::uuid, 1, 1, '' FROM generate_series(1, $1) i ON CONFLICT DO NOTHING`,
}

// TestPlansOfTheLane: on an empty table, one that was just filled, and a large one that
// was analyzed, a lane's statements reach the hot tables by key look-ups only, also where
// the session planned them when the table was another.
func TestPlansOfTheLane(t *testing.T) {
	t.Parallel() // it has a database of its own, and asks nothing of the machine's speed
	db, ctx := newTestDB(t), pgtest.Context(t)
	testPlans(ctx, t, db, sessionStatements(), func() *pgx.Conn { return db.Session(t) })
}

// TestPlansOfTheReads: the same for what runs on the pool, for one-time plans and for
// cached ones. Without PoolSettings a session that read three rows scans 200,000 later.
func TestPlansOfTheReads(t *testing.T) {
	t.Parallel() // it has a database of its own, and asks nothing of the machine's speed
	db, ctx := newTestDB(t), pgtest.Context(t)
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		t.Run(mode, func(t *testing.T) {
			db.Exec(ctx, t, "TRUNCATE counters, usage, receipts_0, holds, adjustments")
			testPlans(ctx, t, db, poolStatements(), func() *pgx.Conn {
				settings := maps.Clone(session.PoolSettings)
				settings["plan_cache_mode"] = mode
				conn, err := postgres.Connect(ctx, db.URL, settings)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = conn.Close(context.Background()) })
				return conn
			})
		})
	}
}

func testPlans(ctx context.Context, t *testing.T, db *testDB, statements map[string]string, session func() *pgx.Conn) {
	t.Helper()
	large := 200_000
	if testing.Short() {
		large = 20_000
	}
	for _, table := range []string{"counters", "usage", "receipts_0", "holds", "adjustments"} {
		db.Exec(ctx, t, "ALTER TABLE "+table+" SET (autovacuum_enabled = off)")
	}
	var sessions []*quotatest.Planned
	for _, stage := range []struct {
		name    string
		rows    int
		analyze bool
	}{{"empty", 0, false}, {"one and analyzed", 1, true}, {"tiny", 3, false}, {"tiny and analyzed", 3, true}, {"fresh", large / 10, false}, {"large", large, false}, {"large and analyzed", large, true}} {
		db.Exec(ctx, t, quotatest.FillSQL, stage.rows)
		db.Exec(ctx, t, fillUsageSQL, stage.rows)
		for _, sql := range fillOtherSQL {
			db.Exec(ctx, t, sql, stage.rows)
		}
		if stage.analyze {
			db.Exec(ctx, t, "ANALYZE counters, usage, receipts_0, holds, adjustments")
		}
		sessions = append(sessions, quotatest.PrepareAll(ctx, t, session(), statements))
		for i, s := range sessions {
			s.Check(ctx, t, fmt.Sprintf("%s, a session of stage %d", stage.name, i), insertOnly.MatchString)
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
		"look-up":     {lookup, true},
		"nested":      {quotatest.PlanNode{Type: "Nested Loop", Plans: []quotatest.PlanNode{{Type: "Function Scan"}, lookup}}, true},
		"usage":       {quotatest.PlanNode{Type: "Index Scan", Relation: "usage", IndexCond: "((shard = 1) AND (customer = 1) AND (meter = 1) AND (hour >= 1) AND (hour < 2))"}, true},
		"seq scan":    {quotatest.PlanNode{Type: "Seq Scan", Relation: "counters"}, false},
		"bitmap":      {quotatest.PlanNode{Type: "Bitmap Heap Scan", Relation: "usage"}, false},
		"whole index": {quotatest.PlanNode{Type: "Index Scan", Relation: "counters"}, false},
		"part of key": {quotatest.PlanNode{Type: "Index Scan", Relation: "counters", IndexCond: strings.Replace(all, "c.meter", "c.water", 1)}, false},
		"hash join":   {quotatest.PlanNode{Type: "Hash Join", Plans: []quotatest.PlanNode{lookup}}, false},
		"materialize": {quotatest.PlanNode{Type: "Nested Loop", Plans: []quotatest.PlanNode{{Type: "Materialize", Plans: []quotatest.PlanNode{lookup}}}}, false},
	} {
		if _, err := c.node.Walk(); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
