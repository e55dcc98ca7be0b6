package quotatest

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// PlanNode is a node of EXPLAIN's JSON.
type PlanNode struct {
	Type      string     `json:"Node Type"`
	Relation  string     `json:"Relation Name"`
	IndexCond string     `json:"Index Cond"`
	Plans     []PlanNode `json:"Plans"`
}

// keyOf are the columns that an index look-up must compare.
var keyOf = map[string][]string{
	"counters": {"shard", "customer", "meter", "attribute"},
	"usage":    {"shard", "customer", "meter", "hour"},

	"receipts_0": {"shard", "customer", "key"}, "receipts_1": {"shard", "customer", "key"}, "receipts_2": {"shard", "customer", "key"},
	"holds":       {"shard", "customer", "meter", "attribute"},
	"adjustments": {"shard", "customer", "meter", "hour"},
	"refusals":    {"shard", "customer"},
}

// skipping is how the list of open reservations comes from one meter to the next.
var skipping = regexp.MustCompile(`\(ROW\(h(_\d+)?\.meter, h(_\d+)?\.attribute\) >= ROW\(`)

var trimming = regexp.MustCompile(`\(ROW\(refusals(_\d+)?\.customer, refusals(_\d+)?\.meter\) > ROW\(`)

// Walk goes through a plan and refuses every way to a hot table but a look-up by its whole key.
// It returns whether a hot table is below.
func (p *PlanNode) Walk() (hot bool, err error) {
	for i := range p.Plans {
		below, err := p.Plans[i].Walk()
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
		if !behind(column, p.IndexCond) && !regexp.MustCompile(`[(.]`+column+` (=|>=|= ANY) ?`).MatchString(p.IndexCond) {
			return true, fmt.Errorf("%s is looked up without its %s: %s", p.Relation, column, p.IndexCond)
		}
	}
	return true, nil
}

// behind reports whether a condition goes on behind a key that has the column: that of the cleaner,
// of the trimmer, or of the list of open reservations.
func behind(column, cond string) bool {
	if column == "shard" {
		return false
	}
	return strings.Contains(cond, "(ROW(counters.customer, counters.meter, counters.attribute) > ROW(") ||
		trimming.MatchString(cond) || column != "customer" && skipping.MatchString(cond)
}

// Planned is a session with prepared statements and arguments that fit them.
type Planned struct {
	Conn *pgx.Conn
	Args map[string]string
}

var oneOf = map[uint32]string{
	pgtype.Int2ArrayOID: "'{1,2}'", pgtype.Int4ArrayOID: "'{1,2}'", pgtype.Int8ArrayOID: "'{1,2}'", pgtype.TextArrayOID: `'{"",""}'`,
	pgtype.UUIDArrayOID: "'{00000000-0000-0000-0000-000000000001,00000000-0000-0000-0000-000000000002}'", pgtype.ByteaArrayOID: "'{a,b}'",
	pgtype.BoolArrayOID: "'{t,f}'", pgtype.Int2OID: "1", pgtype.Int4OID: "1", pgtype.Int8OID: "1", pgtype.TextOID: "''", pgtype.UUIDOID: "'00000000-0000-0000-0000-000000000001'",
}

// PrepareAll prepares statements on a session.
func PrepareAll(ctx context.Context, t *testing.T, conn *pgx.Conn, statements map[string]string) *Planned {
	t.Helper()
	p := &Planned{conn, make(map[string]string)}
	for name, text := range statements {
		d, err := conn.PgConn().Prepare(ctx, name, text, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var args []string
		for _, oid := range d.ParamOIDs {
			args = append(args, oneOf[oid])
		}
		p.Args[name] = strings.Join(args, ",")
	}
	return p
}

// Check explains each prepared statement as the session would run it now.
func (p *Planned) Check(ctx context.Context, t *testing.T, when string, insertOnly func(name string) bool) {
	t.Helper()
	for _, name := range sortedKeys(p.Args) {
		var text []byte
		explain := "EXPLAIN (FORMAT JSON, VERBOSE) EXECUTE " + name + "(" + p.Args[name] + ")"
		if err := p.Conn.QueryRow(ctx, explain, pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
			t.Fatalf("%s, %s: %v", when, name, err)
		}
		var plans []struct{ Plan PlanNode }
		if err := json.Unmarshal(text, &plans); err != nil {
			t.Fatal(err)
		}
		hot, err := plans[0].Plan.Walk()
		if err == nil && !hot && !insertOnly(name) {
			err = fmt.Errorf("no hot table in the plan")
		}
		if err != nil {
			t.Errorf("%s, %s: %v\n%s", when, name, err, text)
		}
	}
}

// FillSQL adds n counters and two hours of usage for each.
const FillSQL = `
INSERT INTO counters (shard, customer, meter, attribute, state, units, hour)
SELECT i % 1024, i, 1 + i % 3, CASE WHEN i % 5 = 0 THEN 'ip=' || i ELSE '' END, '{1,2,1}', 1, 5
FROM generate_series(1, $1) i ON CONFLICT DO NOTHING`

// Reached collects how a plan comes to the rows of hot tables.
func (p *PlanNode) Reached() (ways []PlanNode) {
	for i := range p.Plans {
		ways = append(ways, p.Plans[i].Reached()...)
	}
	if keyOf[p.Relation] != nil && p.Type != "ModifyTable" {
		ways = append(ways, *p)
	}
	return ways
}
