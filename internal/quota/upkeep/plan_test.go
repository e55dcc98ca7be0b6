package upkeep

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// clearStatements are those of this file, by whose text the hot tables are reached, and
// of each the columns that its look-ups must compare.
func clearStatements() (statements map[string]string, key map[string][]string) {
	whole, customers := []string{"shard", "customer", "meter", "attribute"}, []string{"shard", "customer"}
	statements = map[string]string{
		"idle": idleSinceSQL, "meters of": metersOfSQL, "in use": inUseSQL, "lock all": lockAllSQL, "lock": lockUncleanSQL, "any left": anyLeftSQL,
		"left": uncleanLeftSQL,
		"book": bookSQL, "remove": removeSQL, "empty": emptySQL, "lock old": lockOldSQL, "book old": bookOldSQL, "booked old": bookedOldSQL,
	}
	key = map[string][]string{
		"idle": customers, "meters of": customers, "in use": whole[:3], "lock all": customers, "lock": customers, "any left": customers, "left": customers,
		"book": whole, "remove": whole, "empty": whole, "lock old": whole, "book old": whole, "booked old": whole,
	}
	return statements, key
}

// TestPlansOfClearing: as TestPlansOfTheReads, for what reaches all counters of customers
// by the beginning of their key.
func TestPlansOfClearing(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	statements, key := clearStatements()
	check := func(p *quotatest.Planned, when string) {
		for name := range p.Args {
			for _, way := range reached(ctx, t, p, name) {
				for _, column := range key[name] {
					if !strings.HasPrefix(way.Type, "Index") || !strings.Contains(way.IndexCond, "counters."+column+" = ") &&
						!strings.Contains(way.IndexCond, "c."+column+" = ") {
						t.Errorf("%s, %s: by no %s: %+v", when, name, column, way)
					}
				}
			}
		}
	}
	db.Exec(ctx, t, "ALTER TABLE counters SET (autovacuum_enabled = off)")
	var sessions []*quotatest.Planned
	for _, stage := range []struct {
		rows    int
		analyze bool
	}{{0, false}, {1, true}, {3, false}, {3, true}, {2000, false}, {20_000, false}, {20_000, true}} {
		db.Exec(ctx, t, quotatest.FillSQL, stage.rows)
		if stage.analyze {
			db.Exec(ctx, t, "ANALYZE counters")
		}
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			sessions = append(sessions, quotatest.PrepareAll(ctx, t, db.PoolSession(t, mode), statements))
		}
		for i, s := range sessions {
			check(s, fmt.Sprintf("%+v, session %d", stage, i))
		}
	}
}

// TestPlansOfTheWalk: the walk over all that was charged goes by the key, whatever the table was when
// a session planned it.
func TestPlansOfTheWalk(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	var sessions []*quotatest.Planned
	for _, rows := range []int{0, 3, 20_000} {
		db.Exec(ctx, t, quotatest.FillSQL, rows)
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			sessions = append(sessions, quotatest.PrepareAll(ctx, t, db.PoolSession(t, mode),
				map[string]string{"charged": nextCharged, "shard": nextShard, "stored": nextStored}))
		}
		for i, s := range sessions {
			for name, by := range map[string]string{"charged": "ROW(", "shard": "shard >= ", "stored": "ROW("} {
				for _, way := range reached(ctx, t, s, name) {
					if !strings.HasPrefix(way.Type, "Index") || !strings.Contains(way.IndexCond, by) || !strings.Contains(way.IndexCond, "shard") {
						t.Errorf("%d rows, session %d, %s: %+v", rows, i, name, way)
					}
				}
			}
		}
	}
}

// TestPlansOfThresholds: the oldest ones are found, and deleted, by the key.
func TestPlansOfThresholds(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	db.Exec(ctx, t, "ALTER TABLE thresholds SET (autovacuum_enabled = off)")
	var sessions []*quotatest.Planned
	for _, rows := range []int{0, 3, 20_000} {
		db.Exec(ctx, t, `INSERT INTO thresholds SELECT i, 1, i, 1, 1, 0, 0, 0, 0, 1, 1, i % 1024, 80, 'l', '' FROM generate_series(1, $1) i ON CONFLICT DO NOTHING`,
			rows)
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			sessions = append(sessions, quotatest.PrepareAll(ctx, t, db.PoolSession(t, mode), map[string]string{"any": anyThreshold, "take": takeThresholds}))
		}
		for i, s := range sessions {
			for _, name := range []string{"any", "take"} {
				for _, way := range reached(ctx, t, s, name) {
					if !strings.HasPrefix(way.Type, "Index") {
						t.Errorf("%d rows, session %d, %s: %+v", rows, i, name, way)
					}
				}
			}
		}
	}
}

// reached is how a session would reach the hot tables by a statement now.
func reached(ctx context.Context, t *testing.T, p *quotatest.Planned, name string) []quotatest.PlanNode {
	t.Helper()
	var text []byte
	explain := "EXPLAIN (FORMAT JSON, VERBOSE) EXECUTE " + pgx.Identifier{name}.Sanitize() + "(" + p.Args[name] + ")"
	if err := p.Conn.QueryRow(ctx, explain, pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var plans []struct{ Plan quotatest.PlanNode }
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	ways := plans[0].Plan.Reached()
	if len(ways) == 0 {
		t.Errorf("%s: no hot table in the plan\n%s", name, text)
	}
	return ways
}
