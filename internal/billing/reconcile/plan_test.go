package reconcile

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
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

// Adjustments are looked up by their key: those that an invoice counts by all of it, those of a
// line by customer, meter and hours. There may be millions of others of the same shard or meter.
func TestAdjustmentsAreLookedUpByTheirKey(t *testing.T) {
	r := newReconciler(t)
	ids, texts, shards, numbers := []string{noInvoice}, []string{"m"}, []int16{model.Shard(1)}, []int64{1}
	for statement, c := range map[string]struct {
		args []any
		by   string
	}{
		selectSums:      {[]any{ids, shards, numbers, texts, numbers, numbers, []bool{true}}, "customer = l.customer) AND (meter = l.meter) AND (hour = l.hour) AND (key = l.key)"},
		selectCounted:   {[]any{[]int{1}, ids, shards, numbers, texts, numbers, numbers, numbers}, "customer = l.customer) AND (meter = l.meter) AND (hour = l.hour) AND (key = l.key)"},
		selectCorrected: {[]any{ids, ids, texts, shards}, "customer = c.customer) AND (meter = c.meter) AND (hour = c.hour) AND (key = c.key)"},
		selectUnclaimed: {[]any{shards, numbers, texts, numbers, numbers, numbers}, "customer = w.customer) AND (meter = meters.id) AND (hour >= w.start_at) AND (hour < w.end_at)"},
	} {
		plan := planOf(t, r, statement, c.args...)
		by := ""
		if _, behind, there := strings.Cut(plan, "adjustments_pkey on adjustments\n"); there {
			by, _, _ = strings.Cut(behind, "\n")
		}
		if !strings.Contains(by, c.by) {
			t.Errorf("adjustments are looked up by %s\nin %s", by, plan)
		}
	}
}
