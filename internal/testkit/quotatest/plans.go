package quotatest

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
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
	"levels":      {"shard", "customer", "meter"},
	"thresholds":  {"shard", "customer", "meter", "at", "version", "name", "percent"},
}

// partition is how a partition of usage or adjustments is named.
var partition = regexp.MustCompile(`^(usage|adjustments)_(first|default|\d{4}_\d{2})$`)

// tableOf is the table that a relation is, or is a partition of.
func tableOf(relation string) string {
	if m := partition.FindStringSubmatch(relation); m != nil {
		return m[1]
	}
	return relation
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
	if (p.Type == "Append" || p.Type == "Merge Append") && p.months() > 1 {
		return true, fmt.Errorf("%d partitions of a table are opened", p.months())
	}
	if hot && (p.Type == "Hash Join" || p.Type == "Merge Join" || p.Type == "Memoize" || p.Type == "Materialize") {
		return true, fmt.Errorf("a %s of a hot table", p.Type)
	}
	key := keyOf[tableOf(p.Relation)]
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

// months is how many partitions of one table a node has below itself, the most of a table.
func (p *PlanNode) months() (most int) {
	of := make(map[string]int)
	for i := range p.Plans {
		if partition.MatchString(p.Plans[i].Relation) {
			table := tableOf(p.Plans[i].Relation)
			of[table]++
			most = max(most, of[table])
		}
	}
	return most
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
	pgtype.BoolArrayOID: "'{t,f}'", pgtype.Int2OID: "1", pgtype.Int4OID: "1", pgtype.Int8OID: "1", pgtype.TextOID: "''",
	pgtype.UUIDOID: "'00000000-0000-0000-0000-000000000001'",
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
		for i, oid := range d.ParamOIDs {
			arg := oneOf[oid]
			if oid == pgtype.Int8OID {
				arg = strconv.Itoa(i + 1) // a span begins before it ends
			}
			args = append(args, arg)
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

// MakeMonths makes partitions of usage and adjustments, as nodes make them, for some months of 2030.
func MakeMonths(ctx context.Context, t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, table := range []string{"usage", "adjustments"} {
		for m := range time.Month(4) {
			from, to := time.Date(2030, 1+m, 1, 0, 0, 0, 0, time.UTC), time.Date(2030, 2+m, 1, 0, 0, 0, 0, time.UTC)
			sql := fmt.Sprintf("CREATE TABLE %s_%s PARTITION OF %s FOR VALUES FROM (%d) TO (%d)", table, from.Format("2006_01"), table, from.UnixMicro(), to.UnixMicro())
			if _, err := pool.Exec(ctx, sql); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// FillSQL adds n counters and two hours of usage for each.
const FillSQL = `
INSERT INTO counters (shard, customer, meter, attribute, state, units, hour)
SELECT i % 1024, i, 1 + i % 3, CASE WHEN i % 5 = 0 THEN 'ip=' || i ELSE '' END, '{1,2,1,9}', 1, 5
FROM generate_series(1, $1) i ON CONFLICT DO NOTHING`

// Reached collects how a plan comes to the rows of hot tables.
func (p *PlanNode) Reached() (ways []PlanNode) {
	for i := range p.Plans {
		ways = append(ways, p.Plans[i].Reached()...)
	}
	if keyOf[tableOf(p.Relation)] != nil && p.Type != "ModifyTable" {
		ways = append(ways, *p)
	}
	return ways
}

// SplitMonths makes tables of usage and adjustments for the months from one on, as nodes would have
// made them then: all hours of a new database are in the first partition.
func SplitMonths(ctx context.Context, t testing.TB, pool *pgxpool.Pool, from time.Time, months int) {
	t.Helper()
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, table := range []string{"usage", "adjustments"} { // no row is new: no trigger
			sql := fmt.Sprintf(`ALTER TABLE %[1]s DISABLE TRIGGER USER; CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT * FROM %[1]s_first; DROP TABLE %[1]s_first;
				CREATE TABLE %[1]s_first PARTITION OF %[1]s FOR VALUES FROM (MINVALUE) TO (%[2]d)`, table, from.UnixMicro())
			for m := range months {
				start := from.AddDate(0, m, 0)
				sql += fmt.Sprintf("; CREATE TABLE %[1]s_%[2]s PARTITION OF %[1]s FOR VALUES FROM (%[3]d) TO (%[4]d)", table, start.Format("2006_01"),
					start.UnixMicro(), start.AddDate(0, 1, 0).UnixMicro())
			}
			if _, err := tx.Exec(ctx, sql+"; INSERT INTO "+table+" SELECT * FROM kept; DROP TABLE kept; ALTER TABLE "+table+" ENABLE TRIGGER USER",
				pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
