package accounts

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// What is waiting is found by its index, however many drafts and invoices there are.
func TestWhoWaitsIsFoundByTheIndex(t *testing.T) {
	pool := planstest.NewPool(t, pgtest.NewDatabase(t))
	rows, _ := pool.Query(t.Context(), "EXPLAIN (COSTS OFF) "+takeWaiting, "default", 500)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if plan := strings.Join(lines, "\n"); !strings.Contains(plan, "invoices_nameless") {
		t.Error(plan)
	}
}
