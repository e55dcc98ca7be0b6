package usage

import (
	"fmt"
	"testing"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/quotatest"
)

// pgtest.Main also fails when a goroutine outlives the tests.
func TestMain(m *testing.M) { pgtest.Main(m) }

// TestPlans: hot tables are reached by their keys, on an empty table, one that was just filled, and a
// large one, also by plans that were made when the table was another.
func TestPlans(t *testing.T) {
	db, ctx := quotatest.NewDB(t), testkit.Context(t)
	statements := map[string]string{
		"sums": sumsSQL, "hours": hoursSQL, "adjustments": adjustmentsSQL, "used": anySQL, "held": heldSQL, "fence_archived": fenceArchivedSQL,
		"mark": markSQL, "last_hour": lastHourSQL,
	}
	quotatest.MakeMonths(ctx, t, db.Pool)
	var sessions []*quotatest.Planned
	for _, stage := range []struct {
		rows    int
		analyze bool
	}{{0, false}, {1, true}, {3, false}, {3, true}, {2000, false}, {20_000, false}, {20_000, true}} {
		db.Exec(ctx, t, quotatest.FillSQL, stage.rows)
		db.Exec(ctx, t, `INSERT INTO usage (shard, customer, meter, hour, admitted)
			SELECT i % 1024, i, 1 + i % 3, h, 1 FROM generate_series(1, $1) i, generate_series(1, 2) h ON CONFLICT DO NOTHING`, stage.rows)
		db.Exec(ctx, t, `INSERT INTO levels (shard, customer, meter, at, level, integral)
			SELECT i % 1024, i, -1 - i % 3, h, 1, 0 FROM generate_series(1, $1) i, generate_series(1, 2) h ON CONFLICT DO NOTHING`, stage.rows)
		db.Exec(ctx, t, `INSERT INTO adjustments (shard, customer, meter, hour, key, cost, at, reason)
			SELECT i % 1024, i % 1000, 1 + i % 3, i, md5(i::text)::uuid, 1, 1, '' FROM generate_series(1, $1) i ON CONFLICT DO NOTHING`, stage.rows)
		if stage.analyze {
			db.Exec(ctx, t, "ANALYZE counters, usage, levels, adjustments")
		}
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			s := quotatest.PrepareAll(ctx, t, db.PoolSession(t, mode), statements)
			s.Args["used"] = "1, 1, '{1,2}', 9000000000000000000" // of the years before only what is later is opened
			s.Args["last_hour"] = s.Args["used"]
			sessions = append(sessions, s)
		}
		for i, s := range sessions {
			s.Check(ctx, t, fmt.Sprintf("%+v, session %d", stage, i), func(name string) bool { return name == "fence_archived" })
		}
	}
}
