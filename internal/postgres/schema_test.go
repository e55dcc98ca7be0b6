package postgres_test

import (
	"strings"
	"testing"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/migrations"
)

// A new database has partitions for all hours: of the past, which imports write, of this month, and of
// what nobody made a month for. What is within two days is never in the default partition.
func TestNewDatabaseHasPartitions(t *testing.T) {
	ctx, databaseURL := testkit.Context(t), emptyDatabase(t)
	if _, err := postgres.Migrate(ctx, databaseURL, migrations.FS, quietly); err != nil {
		t.Fatal(err)
	}
	const hours = ` FROM (SELECT 0 AS hour UNION SELECT 1577836800000000 UNION SELECT (extract(epoch FROM clock_timestamp() + n * interval '1 day') * 1000000)::bigint FROM unnest(ARRAY[0, 1, 2, 400]) n) h`
	pgtest.Exec(t, databaseURL,
		`INSERT INTO usage (shard, customer, meter, hour, admitted) SELECT 1, 1, 1, hour, 5`+hours,
		`INSERT INTO adjustments (shard, customer, meter, hour, key, cost, at, reason) SELECT 1, 1, 1, hour, gen_random_uuid(), 1, 1, ''`+hours,
		`INSERT INTO audit (at, actor, request, action, subject, target) SELECT to_timestamp(hour / 1000000), 'a', '', '', '', ''`+hours)
	for table, column := range map[string]string{"usage": "hour", "adjustments": "hour", "audit": "at"} {
		got := pgtest.Query[string](t, databaseURL, `SELECT string_agg(tableoid::regclass::text, ' ' ORDER BY `+column+`) FROM `+table)
		if want := strings.Repeat(table+"_first ", 5) + table + "_default"; got != want {
			t.Errorf("rows are in %s, want %s", got, want)
		}
	}
	if n := pgtest.Query[int](t, databaseURL,
		`SELECT count(*) FROM pg_class WHERE relname IN ('usage_first', 'usage_default') AND reloptions = '{fillfactor=80}'`); n != 2 {
		t.Errorf("%d partitions of usage have room in their pages", n)
	}
	conn, err := postgres.Connect(ctx, databaseURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer postgres.CloseConn(conn)
	for _, partition := range []string{"audit_first", "audit_default"} {
		for _, sql := range []string{`UPDATE % SET actor = 'b'`, `DELETE FROM %`, `TRUNCATE %`} {
			sql = strings.ReplaceAll(sql, "%", partition)
			if _, err := conn.Exec(ctx, sql); err == nil || !strings.Contains(err.Error(), "append-only") {
				t.Errorf("%s: %v", sql, err)
			}
		}
	}
}
