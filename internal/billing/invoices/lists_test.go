package invoices

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// Lists come in the order of an index, whichever customers are chosen.
func TestListsHaveAnIndex(t *testing.T) {
	pool := planstest.NewPool(t, pgtest.NewDatabase(t))
	planstest.SetClock(t, store.New(pool, store.Options{Within: testkit.Patience}), "clock", "2026-01-01T00:00:00Z")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for index, f := range map[string]Filter{
		"invoices_live_period_end on invoices i": {}, "invoices_clock_period_end on invoices i": {TestClock: "clock"},
		"invoices_period_end on invoices i":               {TestClock: AnyClock},
		"unpaid_invoices_period_end on unpaid_invoices u": {Status: "overdue"}, "unpaid_invoices_clock on unpaid_invoices u": {Status: "overdue", TestClock: "clock"},
	} {
		tx, err := pool.Begin(t.Context())
		check(err)
		_, err = tx.Exec(t.Context(), `SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off`)
		check(err)
		statement, first, args, err := f.list(t.Context(), tx, 1)
		check(err)
		rows, _ := tx.Query(t.Context(), "EXPLAIN (COSTS OFF) "+statement, append([]any{first, int64(0), int64(9e18), int64(0), zeroID, 101}, args...)...)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		check(err)
		if plan := strings.Join(lines, "\n"); !strings.Contains(plan, "Index Scan using "+index) || strings.Contains(plan, "Sort") {
			t.Errorf("%s: %s", index, plan)
		}
		check(tx.Rollback(t.Context()))
	}
}
