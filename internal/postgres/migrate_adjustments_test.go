package postgres_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

const (
	beforeCopies = "00018_words_of_names.sql"
	withQueue    = "00019_open_adjustments.sql"
	filledIn     = "00020_taken_adjustments.sql"

	queueOf = `SELECT coalesce(string_agg(a.cost::text, ' ' ORDER BY a.cost), '') FROM open_adjustments q
		LEFT JOIN adjustments a ON a.customer = q.customer AND a.meter = q.meter AND a.hour = q.hour AND a.key = q.key`
	copiesOf = `SELECT coalesce(string_agg(l.cost || ' ' || l.at || ' ' || l.reason, ', ' ORDER BY l.cost, l.invoice_id), '') FROM line_adjustments l`
	// What a node of the version before sends when an invoice takes adjustments.
	takesBefore = `INSERT INTO line_adjustments SELECT * FROM jsonb_populate_recordset(NULL::line_adjustments, $1)`
)

// taking is the rows of takesBefore: the draft takes an adjustment, by its cost.
func taking(t *testing.T, databaseURL string, cost int) string {
	t.Helper()
	return pgtest.Query[string](t, databaseURL, `SELECT jsonb_agg(jsonb_build_object('invoice_id', i.id, 'customer', a.customer, 'meter', a.meter, 'hour', a.hour, 'key', a.key))::text
		FROM invoices i, adjustments a WHERE i.status = 'draft' AND a.cost = $1`, cost)
}

// The queue begins with what no invoice has taken, and what was taken is copied, also by final
// invoices. Nodes of the version before go on beside it, by sessions of before. All of it may be done
// again.
func TestAdjustmentsAreCopied(t *testing.T) {
	ctx, databaseURL := testkit.Context(t), emptyDatabase(t)
	toVersion(t, databaseURL, beforeCopies, false)
	pgtest.Exec(t, databaseURL, append(slices.Clone(numberedBefore),
		`INSERT INTO open_periods (customer_id, due_at) SELECT id, 0 FROM customers WHERE key = 'live'`,
		`INSERT INTO adjustments (shard, customer, meter, hour, key, cost, at, reason)
			SELECT c.shard, (SELECT id FROM customers WHERE key = c.key), 1, 3600000000 * n, gen_random_uuid(), n, 100 + n, 'r' || n
			FROM (VALUES (3, 'live', 1, 4), (1000, 'test', 5, 5)) AS c (shard, key, lowest, highest), generate_series(c.lowest, c.highest) n`,
		anInvoice("live"))...)
	session, err := postgres.Connect(ctx, databaseURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(ctx)
	take := func(cost int) {
		t.Helper()
		if _, err := session.Exec(ctx, takesBefore, taking(t, databaseURL, cost)); err != nil {
			t.Fatal(err)
		}
	}
	shows := func(when, queue, copies string) {
		t.Helper()
		if got := pgtest.Query[string](t, databaseURL, queueOf); got != queue {
			t.Errorf("%s: the queue has %q, want %q", when, got, queue)
		}
		if got := pgtest.Query[string](t, databaseURL, copiesOf); got != copies {
			t.Errorf("%s: copied are %q, want %q", when, got, copies)
		}
	}
	take(1)
	pgtest.Exec(t, databaseURL, takeANumber("live", "3"), anInvoice("live"))
	take(2)
	take(3)
	pgtest.Exec(t, databaseURL, takeANumber("live", "4"), `UPDATE invoices SET status = 'void' WHERE number = 4`, anInvoice("live"))
	take(3)
	toVersion(t, databaseURL, filledIn, false)
	copies := "1 101 r1, 2 102 r2, 3 103 r3, 3 103 r3"
	shows("at first", "2 4 5", copies)

	pgtest.Exec(t, databaseURL, `INSERT INTO adjustments (shard, customer, meter, hour, key, cost, at, reason)
		SELECT adjustment_shard(id), id, 1, 0, gen_random_uuid(), 6, 106, 'r6' FROM customers WHERE key = 'live'`)
	shows("a node of before adjusted", "2 4 5 6", copies)
	take(6)
	copies += ", 6 106 r6"
	shows("it took that", "2 4 5", copies)
	refused := func(change string) {
		t.Helper()
		if _, err := pgtest.TryQuery[int](ctx, databaseURL, `WITH x AS (`+change+` RETURNING 1) SELECT count(*)::int FROM x`); err == nil || !strings.Contains(err.Error(), "lines cannot be changed") {
			t.Errorf("%s of a final invoice: %v", change, err)
		}
	}
	refused(`UPDATE line_adjustments SET cost = 7 WHERE cost = 1`)
	refused(`UPDATE line_adjustments SET reason = NULL WHERE cost = 1`)
	refused(`UPDATE line_adjustments SET at = at WHERE cost = 1`)
	refused(`DELETE FROM line_adjustments WHERE cost = 1`)

	leftOut := []string{
		`ALTER TABLE line_adjustments DISABLE TRIGGER USER`, `UPDATE line_adjustments SET cost = NULL, at = NULL, reason = NULL`,
		`ALTER TABLE line_adjustments ENABLE TRIGGER USER`, `DELETE FROM open_adjustments WHERE hour > 4 * 3600000000`,
	}
	pgtest.Exec(t, databaseURL, append(leftOut, `DELETE FROM migrations WHERE version_id > 18`)...)
	refused(`UPDATE line_adjustments SET cost = 1, hour = 7 WHERE hour = 3600000000`)
	toVersion(t, databaseURL, filledIn, false)
	shows("again", "2 4 5", copies)
	toVersion(t, databaseURL, filledIn, true)
	toVersion(t, databaseURL, withQueue, true)
	take(4)
	toVersion(t, databaseURL, filledIn, false)
	shows("down, and up again", "2 5", "1 101 r1, 2 102 r2, 3 103 r3, 3 103 r3, 4 104 r4, 6 106 r6")
}

// Whoever takes an adjustment while the queue is filled has the lock of the customer's billing. The
// filling waits, and leaves the adjustment out.
func TestFillingTheQueueWaits(t *testing.T) {
	ctx, databaseURL := testkit.Context(t), emptyDatabase(t)
	toVersion(t, databaseURL, withQueue, false)
	pgtest.Exec(t, databaseURL, append(slices.Clone(numberedBefore),
		`INSERT INTO open_periods (customer_id, due_at) SELECT id, 0 FROM customers WHERE key = 'live'`, anInvoice("live"),
		`INSERT INTO adjustments (shard, customer, meter, hour, key, cost, at, reason) SELECT 3, id, 1, 0, gen_random_uuid(), 1, 1, '' FROM customers WHERE key = 'live'`,
		`DELETE FROM open_adjustments`)...)
	session, err := postgres.Connect(ctx, databaseURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(ctx)
	tx, err := session.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, bad := tx.Exec(ctx, `SELECT FROM open_periods FOR UPDATE`)
	_, worse := tx.Exec(ctx, takesBefore, taking(t, databaseURL, 1))
	if err := errors.Join(bad, worse); err != nil {
		t.Fatal(err)
	}
	all, filled := schemaTo(t, filledIn), make(chan error, 1)
	go func() {
		_, err := postgres.Migrate(ctx, databaseURL, all, quietly)
		filled <- err
	}()
	testkit.Eventually(t, "the filling waits", func() bool {
		return pgtest.Query[bool](t, databaseURL, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid')`)
	})
	if err := errors.Join(tx.Commit(ctx), <-filled); err != nil {
		t.Fatal(err)
	}
	if got := pgtest.Query[string](t, databaseURL, queueOf); got != "" {
		t.Errorf("the queue has %q", got)
	}
}
