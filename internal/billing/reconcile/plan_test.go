package reconcile

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// planOf is the plan of a statement in a snapshot, on tables that nobody has analyzed.
func planOf(t *testing.T, r *Reconciler, statement string, args ...any) (plan string) {
	t.Helper()
	err := r.snapshot(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, "EXPLAIN (COSTS OFF) "+statement, args...)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		plan = strings.Join(lines, "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// Lists come in the order of the key. A list that is sorted reads all rows for each page.
func TestListsAreNotSorted(t *testing.T) {
	r := newReconciler(t)
	for statement, args := range map[string][]any{
		nextInvoices: {noInvoice, 10}, nextCustomers: {int64(0), 10}, nextSellers: {"", 10},
	} {
		if plan := planOf(t, r, statement, args...); !strings.Contains(plan, "_pkey") || strings.Contains(plan, "Sort") {
			t.Errorf("%s\n%s", statement, plan)
		}
	}
}

// What invoices took of a line's hours, and what waits for one, is looked up by customer, meter and
// hours. There may be millions of others.
func TestAdjustmentsAreLookedUpByTheirKey(t *testing.T) {
	r := newReconciler(t)
	ids, meters, hours := []string{noInvoice}, []int32{1}, []int64{1}
	const taken, queued = "line_adjustments_of on line_adjustments", "open_adjustments_pkey on open_adjustments"
	for statement, c := range map[string]struct {
		args      []any
		index, by string
	}{
		selectTaken:     {[]any{hours, meters, hours, hours}, taken, "(customer = w.customer) AND (meter = w.meter) AND (hour >= w.start_at) AND (hour < w.end_at)"},
		selectQueued:    {[]any{hours, meters, hours, hours}, queued, "(customer = w.customer) AND (hour >= w.start_at) AND (hour < w.end_at) AND (meter = w.meter)"},
		selectCorrected: {[]any{ids, ids, []string{"m"}}, taken, "(customer = i.customer_id) AND (meter = m.id) AND (hour >= l.from_at) AND (hour < l.to_at)"},
	} {
		plan := planOf(t, r, statement, c.args...)
		_, after, _ := strings.Cut(plan, c.index)
		_, after, _ = strings.Cut(after, "\n")
		if by, _, _ := strings.Cut(after, "\n"); !strings.Contains(by, c.by) {
			t.Errorf("%s by %s\nin %s", c.index, by, plan)
		}
	}
}
