package quota

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"quotad/internal/postgres"
	"quotad/internal/postgres/pgtest"
)

// planNode is a node of EXPLAIN's JSON.
type planNode struct {
	Type      string     `json:"Node Type"`
	Relation  string     `json:"Relation Name"`
	IndexCond string     `json:"Index Cond"`
	Plans     []planNode `json:"Plans"`
}

// keyOf are the columns that an index look-up must compare.
var keyOf = map[string][]string{
	"counters": {"shard", "customer", "meter", "attribute"},
	"usage":    {"shard", "customer", "meter", "hour"},

	"receipts_0": {"shard", "customer", "key"}, "receipts_1": {"shard", "customer", "key"}, "receipts_2": {"shard", "customer", "key"},
	"holds":       {"shard", "customer", "meter", "attribute"},
	"adjustments": {"shard", "customer", "meter", "hour"},
}

// insertOnly are the statements that look nothing up.
var insertOnly = regexp.MustCompile("^(" + string(insertRows) + "|" + string(makeRows) + "|" + string(ledgerMake) + "|deny|" + string(ledgerIssue) + ".|" +
	string(ledgerOpen) + "|" + string(ledgerUsage) + "|" + string(ledgerAdjust) + ")$")

// walk goes through a plan and refuses every way to a hot table but a look-up by its whole key.
// It returns whether a hot table is below.
func (p *planNode) walk() (hot bool, err error) {
	for i := range p.Plans {
		below, err := p.Plans[i].walk()
		if err != nil {
			return false, err
		}
		hot = hot || below
	}
	if hot && (p.Type == "Hash Join" || p.Type == "Merge Join" || p.Type == "Memoize" || p.Type == "Materialize") {
		return true, fmt.Errorf("a %s of a hot table", p.Type)
	}
	key := keyOf[p.Relation]
	if key == nil || p.Type == "ModifyTable" {
		return hot, nil
	}
	if p.Type == "Tid Scan" {
		return true, nil
	}
	if p.Type != "Index Scan" && p.Type != "Index Only Scan" {
		return true, fmt.Errorf("a %s of %s", p.Type, p.Relation)
	}
	for _, column := range key {
		// The cleaner goes on behind a key.
		behind := column != "shard" && strings.Contains(p.IndexCond, "(ROW(counters.customer, counters.meter, counters.attribute) > ROW(")
		if !behind && !regexp.MustCompile(`[(.]`+column+` (=|>=|= ANY) ?`).MatchString(p.IndexCond) {
			return true, fmt.Errorf("%s is looked up without its %s: %s", p.Relation, column, p.IndexCond)
		}
	}
	return true, nil
}

// sessionStatements are those of a lane's session and of a ledger's, poolStatements those of the
// pool's.
func sessionStatements() map[string]string {
	all := make(map[string]string)
	for name, text := range laneStatements() {
		all[string(name)] = text
	}
	for name, text := range ledgerStatements() {
		if name != ledgerTurn { // a table of one row
			all[string(name)] = text
		}
	}
	return all
}

func poolStatements() map[string]string {
	return map[string]string{
		"read": readSQL, "usage": usageSQL, "deny": denySQL,
		"page": pageSQL, "values": valuesSQL, "clean": deleteSQL,
	}
}

// planned is a session with prepared statements and arguments that fit them.
type planned struct {
	conn *pgx.Conn
	args map[string]string
}

var oneOf = map[uint32]string{
	pgtype.Int2ArrayOID: "'{1,2}'", pgtype.Int4ArrayOID: "'{1,2}'", pgtype.Int8ArrayOID: "'{1,2}'", pgtype.TextArrayOID: `'{"",""}'`,
	pgtype.UUIDArrayOID: "'{00000000-0000-0000-0000-000000000001,00000000-0000-0000-0000-000000000002}'", pgtype.ByteaArrayOID: "'{a,b}'",
	pgtype.Int2OID: "1", pgtype.Int4OID: "1", pgtype.Int8OID: "1", pgtype.TextOID: "''",
}

func prepareAll(ctx context.Context, t *testing.T, conn *pgx.Conn, statements map[string]string) *planned {
	t.Helper()
	p := &planned{conn, make(map[string]string)}
	for name, text := range statements {
		d, err := conn.PgConn().Prepare(ctx, name, text, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var args []string
		for _, oid := range d.ParamOIDs {
			args = append(args, oneOf[oid])
		}
		p.args[name] = strings.Join(args, ",")
	}
	return p
}

// check explains each prepared statement as the session would run it now.
func (p *planned) check(ctx context.Context, t *testing.T, when string) {
	t.Helper()
	for _, name := range sortedKeys(p.args) {
		var text []byte
		explain := "EXPLAIN (FORMAT JSON, VERBOSE) EXECUTE " + name + "(" + p.args[name] + ")"
		if err := p.conn.QueryRow(ctx, explain, pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
			t.Fatalf("%s, %s: %v", when, name, err)
		}
		var plans []struct{ Plan planNode }
		if err := json.Unmarshal(text, &plans); err != nil {
			t.Fatal(err)
		}
		hot, err := plans[0].Plan.walk()
		if err == nil && !hot && !insertOnly.MatchString(name) {
			err = fmt.Errorf("no hot table in the plan")
		}
		if err != nil {
			t.Errorf("%s, %s: %v\n%s", when, name, err, text)
		}
	}
}

// fill adds n counters and two hours of usage for each.
const fillSQL = `
INSERT INTO counters (shard, customer, meter, attribute, state, units, hour)
SELECT i % 1024, i, 1 + i % 3, CASE WHEN i % 5 = 0 THEN 'ip=' || i ELSE '' END, '{1,2,1}', 1, 5
FROM generate_series(1, $1) i ON CONFLICT DO NOTHING`

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
	db, ctx := newTestDB(t), pgtest.Context(t)
	testPlans(ctx, t, db, sessionStatements(), func() *pgx.Conn { return db.session(t) })
}

// TestPlansOfTheReads: the same for what runs on the pool, for one-time plans and for
// cached ones. Without PoolSettings a session that read three rows scans 200,000 later.
func TestPlansOfTheReads(t *testing.T) {
	db, ctx := newTestDB(t), pgtest.Context(t)
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		t.Run(mode, func(t *testing.T) {
			execSQL(ctx, t, db, "TRUNCATE counters, usage, receipts_0, holds, adjustments")
			testPlans(ctx, t, db, poolStatements(), func() *pgx.Conn {
				settings := maps.Clone(PoolSettings)
				settings["plan_cache_mode"] = mode
				conn, err := postgres.Connect(ctx, db.url, settings)
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
		execSQL(ctx, t, db, "ALTER TABLE "+table+" SET (autovacuum_enabled = off)")
	}
	var sessions []*planned
	for _, stage := range []struct {
		name    string
		rows    int
		analyze bool
	}{{"empty", 0, false}, {"one and analyzed", 1, true}, {"tiny", 3, false}, {"tiny and analyzed", 3, true}, {"fresh", large / 10, false}, {"large", large, false}, {"large and analyzed", large, true}} {
		execSQL(ctx, t, db, fillSQL, stage.rows)
		execSQL(ctx, t, db, fillUsageSQL, stage.rows)
		for _, sql := range fillOtherSQL {
			execSQL(ctx, t, db, sql, stage.rows)
		}
		if stage.analyze {
			execSQL(ctx, t, db, "ANALYZE counters, usage, receipts_0, holds, adjustments")
		}
		sessions = append(sessions, prepareAll(ctx, t, session(), statements))
		for i, s := range sessions {
			s.check(ctx, t, fmt.Sprintf("%s, a session of stage %d", stage.name, i))
		}
	}
}

func execSQL(ctx context.Context, t testing.TB, db *testDB, sql string, args ...any) {
	t.Helper()
	if _, err := db.pool.Exec(ctx, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// TestPlanWalk: every other way to a hot table is refused.
func TestPlanWalk(t *testing.T) {
	all := "((c.shard = ANY (ARRAY[g.shard])) AND (c.customer = g.customer) AND (c.meter = 1) AND (c.attribute = g.attribute))"
	lookup := planNode{Type: "Index Scan", Relation: "counters", IndexCond: all}
	for name, c := range map[string]struct {
		node planNode
		good bool
	}{
		"look-up":     {lookup, true},
		"nested":      {planNode{Type: "Nested Loop", Plans: []planNode{{Type: "Function Scan"}, lookup}}, true},
		"usage":       {planNode{Type: "Index Scan", Relation: "usage", IndexCond: "((shard = 1) AND (customer = 1) AND (meter = 1) AND (hour >= 1) AND (hour < 2))"}, true},
		"seq scan":    {planNode{Type: "Seq Scan", Relation: "counters"}, false},
		"bitmap":      {planNode{Type: "Bitmap Heap Scan", Relation: "usage"}, false},
		"whole index": {planNode{Type: "Index Scan", Relation: "counters"}, false},
		"part of key": {planNode{Type: "Index Scan", Relation: "counters", IndexCond: strings.Replace(all, "c.meter", "c.water", 1)}, false},
		"hash join":   {planNode{Type: "Hash Join", Plans: []planNode{lookup}}, false},
		"materialize": {planNode{Type: "Nested Loop", Plans: []planNode{{Type: "Materialize", Plans: []planNode{lookup}}}}, false},
	} {
		if _, err := c.node.walk(); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
