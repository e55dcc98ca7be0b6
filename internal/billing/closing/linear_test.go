package closing

import (
	"testing"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// rowsRead is how many rows of a table were read since the database was made.
const rowsRead = `
	SELECT coalesce(seq_tup_read, 0) + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid)::bigint
	FROM pg_stat_user_tables t WHERE relname = $1`

// comesLater is what comes to each customer after its first invoice: an adjustment of the closed
// period, a charge and a credit. $1: the period's end.
var comesLater = []string{
	`INSERT INTO adjustments (shard, customer, meter, hour, cost, at, key, reason)
	SELECT u.shard, u.customer, u.meter, max(u.hour), 5, $1::bigint, gen_random_uuid(), 'late' FROM usage u GROUP BY 1, 2, 3`,
	`INSERT INTO open_adjustments (customer, hour, meter, key) SELECT customer, hour, meter, key FROM adjustments WHERE at = $1 ON CONFLICT DO NOTHING`,
	`INSERT INTO charges (customer_id, id, description, amount_minor, currency, at, payload)
	SELECT id, 'setup', 'Setup', 100, 'USD', $1, 1 FROM customers`,
	`INSERT INTO credits (customer_id, id, kind, amount_minor, left_minor, currency, priority, at, payload)
	SELECT id, 'gift', 'promotional', 500, 500, 'USD', 50, $1, 1 FROM customers`,
	`INSERT INTO credit_entries (customer_id, credit_id, n, kind, amount_minor, at) SELECT id, 'gift', 1, 'granted', 500, $1 FROM customers`,
}

// TestWorkIsInProportion: closing and finalizing read each row a few times, and not once for each
// customer or each transaction. So do corrections and charges.
//
// Rows are reached by keys wherever there is one. Otherwise the planner reads small tables whole, or
// not, by what is known of them at that moment.
func TestWorkIsInProportion(t *testing.T) { workIsInProportion(t, 300) }

// TestMoreWorkIsInProportion has more customers, which more batches close.
func TestMoreWorkIsInProportion(t *testing.T) { workIsInProportion(t, 1000) }

func workIsInProportion(t *testing.T, customers int64) {
	t.Helper()
	url := pgtest.NewDatabase(t)
	pgtest.Exec(t, url, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET enable_seqscan = off', current_database()); END $$`)
	const lines = 5 + 5 + 3 + 1 // of the first invoice, and of one with corrections and a charge
	w, clock := newBilled(t, url, int(customers), 2)
	w.workOff()
	clock.Set(clock.At.Load() + 3600e6)
	w.workOff()
	at := clock.At.Load()
	for _, statement := range comesLater {
		_, err := w.store.Pool().Exec(w.Context(), statement, at)
		w.check(err)
	}
	clock.Set(pgtest.Query[int64](t, w.url, `SELECT max(end_at) FROM open_periods`) + 3700e6)
	w.workOff() // closes
	clock.Set(clock.At.Load() + 3700e6)
	w.workOff()            // finalizes
	w.store.Pool().Close() // its sessions hand their counts over
	testkit.Eventually(t, "the server has counted", func() bool {
		return pgtest.Query[int64](t, w.url, `SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'invoice_lines'`) == customers*lines
	})
	for table, most := range map[string]int64{
		"customers": 80, "open_periods": 80, "periods": 30, "invoices": 90, "charges": 8, "invoice_lines": 5 * lines,
	} {
		if n := pgtest.Query[int64](t, w.url, rowsRead, table); n > most*customers {
			t.Errorf("%d rows of %s were read for each customer, more than %d", n/customers, table, most)
		}
	}
}
