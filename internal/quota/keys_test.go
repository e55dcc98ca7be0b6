package quota

import (
	"slices"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// TestOrderIsThePrimaryKeys: counters are locked in the order of the table's own index.
func TestOrderIsThePrimaryKeys(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	var keys []model.CounterKey
	for c := range int64(300) {
		for _, attribute := range []string{"", "ip=1", "ip=10", "ip=2", "ip=A", "ip=a", "ip=_", "ip=ä", "ip=z", "ip=€", "ip= ", "Ip", "ip"} {
			keys = append(keys, model.CounterKey{Customer: c*c*c - 1000, Meter: int32(c%3) - 1, Attribute: attribute})
		}
	}
	var columns session.Columns
	for _, k := range keys {
		columns.Add(k)
	}
	db.Exec(ctx, t, "INSERT INTO counters (shard, customer, meter, attribute) SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::text[])",
		columns.Shard, columns.Customer, columns.Meter, columns.Attribute)
	rows, err := db.Pool.Query(ctx, "SELECT customer, meter, attribute FROM counters ORDER BY shard, customer, meter, attribute")
	if err != nil {
		t.Fatal(err)
	}
	var stored []model.CounterKey
	for rows.Next() {
		var k model.CounterKey
		if err := rows.Scan(&k.Customer, &k.Meter, &k.Attribute); err != nil {
			t.Fatal(err)
		}
		stored = append(stored, k)
	}
	slices.SortFunc(keys, model.CompareKeys)
	if rows.Err() != nil || !slices.Equal(keys, stored) {
		t.Errorf("compareKeys is not the primary key's order (%v)", rows.Err())
	}
}

// TestRunningHour: the hour holds its instant, also where a period cuts it and when the
// clock goes back, and is remembered rightly.
func TestRunningHour(t *testing.T) {
	target := quotatest.Target(1, 1, 1)
	cut := quotatest.Epoch - 86400e6 + 17*60e6 // 2026-02-28T00:17, a period's start
	for _, c := range []struct{ at, start, end int64 }{
		{quotatest.Epoch, quotatest.Epoch, quotatest.Epoch + 3600e6},
		{quotatest.Epoch + 3600e6 - 1, quotatest.Epoch, quotatest.Epoch + 3600e6},
		{quotatest.Epoch + 3600e6, quotatest.Epoch + 3600e6, quotatest.Epoch + 7200e6},
		{quotatest.Epoch - 1, quotatest.Epoch - 3600e6, quotatest.Epoch},
		{cut - 1, cut - 17*60e6, cut},
		{cut, cut, cut + 43*60e6},
		{cut - 1, cut - 17*60e6, cut},
	} {
		if start, end := target.RunningHour(c.at); start != c.start || end != c.end {
			t.Errorf("%d: [%d, %d), want [%d, %d)", c.at, start, end, c.start, c.end)
		}
	}
}
