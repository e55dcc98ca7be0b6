package closing

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
	"quotad/internal/testkit/quotatest"
)

// fillBilled makes customers on the plan pro whose period ended at $1, a month after it began.
var fillBilled = []string{
	`
	INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change)
	SELECT 'billed-' || i, 'Billed', p.id, 1, 'UTC', to_char(to_timestamp($1::bigint / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS'), n.number
	FROM plans p, change_number n, generate_series(1, $2::bigint) i WHERE p.key = 'pro' AND $3::bigint IS NOT NULL`,
	`
	INSERT INTO customer_terms (customer_id, change, how, from_at, limits_at, plan_id, joined_version, timezone, billing_anchor)
	SELECT id, change, 'named', 0, 0, plan_id, 1, timezone, billing_anchor FROM customers WHERE $1::bigint + $2::bigint + $3::bigint IS NOT NULL`,
	`
	INSERT INTO billing_accounts (customer_id, currency, starts_at, starts_set_at, change)
	SELECT id, 'USD', $3::bigint, $3, change FROM customers WHERE $1::bigint + $2::bigint IS NOT NULL`,
	`
	INSERT INTO open_periods (customer_id, start_at, end_at, full_start, full_end, known_end, plan_id, version, due_at)
	SELECT id, $3::bigint, $1::bigint, $3, $1, $1, plan_id, 1, $1 FROM customers WHERE $2::bigint IS NOT NULL`,
}

// fillUsed is what they used, in $4 hours and a running one. $2 and $3: the shards and ids of the
// customers.
var fillUsed = []string{
	`
	INSERT INTO counters (shard, customer, meter, at, hour, units, total, version)
	SELECT c.shard, c.id, m.id, $1::bigint - 1800000000, $1 - 3600000000, 60, 660, 60
	FROM unnest($2::smallint[], $3::bigint[]) AS c (shard, id), meters m WHERE $4::bigint > 0`,
	`
	INSERT INTO usage (shard, customer, meter, hour, admitted)
	SELECT c.shard, c.id, m.id, $1::bigint - h * 3600000000, 10
	FROM unnest($2::smallint[], $3::bigint[]) AS c (shard, id), meters m, generate_series(2, $4::bigint + 1) h`,
}

// newBilled is a node with customers whose period is to be closed. Their meters were used in so many
// hours.
func newBilled(t testing.TB, url string, customers, hours int) (*world, *quotatest.Clock) {
	t.Helper()
	end := time.Now().UTC().Truncate(time.Hour)
	clock := quotatest.NewClock(end.Add(10 * time.Second).UnixMicro())
	w := nodeBy(t, url, clock.Now)
	in := plans.PlanInput{Name: "Pro", Currency: "USD", Interval: "month", IntervalCount: 1, BasePriceMinor: 2000}
	for i, price := range []string{
		`{"model":"per_unit","unit_price":"0.01"}`,
		`{"model":"graduated","tiers":[{"up_to":100,"unit_price":"0.02"},{"up_to":null,"unit_price":"0.01"}]}`,
		`{"model":"volume","tiers":[{"up_to":100,"unit_price":"0.02"},{"up_to":null,"unit_price":"0.01"}]}`,
		`{"model":"package","package_size":100,"package_price":"1"}`,
	} {
		key := "meter" + string(rune('a'+i))
		planstest.Declare(t, w.store, key)
		p := plans.Price{Meter: key}
		w.check(json.Unmarshal([]byte(price), &p))
		in.Prices = append(in.Prices, p)
		in.Limits = append(in.Limits, plans.Limit{Meter: key, Spec: model.Spec{Name: key, Algorithm: "fixed_window", Limit: 1e9, Window: "1h"}})
	}
	planstest.PutPlan(t, w.store, "pro", in)
	for _, statement := range fillBilled {
		_, err := w.store.Pool().Exec(w.Context(), statement, end.UnixMicro(), customers, end.AddDate(0, -1, 0).UnixMicro())
		w.check(err)
	}
	rows, _ := w.store.Pool().Query(w.Context(), `SELECT id FROM customers`)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	w.check(err)
	shards := make([]int16, len(ids))
	for i, id := range ids {
		shards[i] = model.Shard(id)
	}
	for _, statement := range fillUsed {
		_, err := w.store.Pool().Exec(w.Context(), statement, end.UnixMicro(), shards, ids, hours)
		w.check(err)
	}
	_, err = w.store.Pool().Exec(w.Context(), `ANALYZE`)
	w.check(err)
	return w, clock
}

// BenchmarkClose closes periods of customers, each with four priced meters of 60 usage hours and
// a running one, and finalizes their drafts an hour later.
func BenchmarkClose(b *testing.B) {
	w, clock := newBilled(b, pgtest.NewDatabase(b), b.N, 60)
	b.ResetTimer()
	began := time.Now()
	w.check(w.worker.WorkOff(b.Context()))
	closed := time.Since(began)
	clock.Set(clock.At.Load() + 3600e6)
	w.check(w.worker.WorkOff(b.Context()))
	b.ReportMetric(float64(b.N)/closed.Seconds(), "closed/s")
	b.ReportMetric(float64(b.N)/(time.Since(began)-closed).Seconds(), "finalized/s")
	b.StopTimer()
	if n := pgtest.Query[int](b, w.url, `SELECT count(*) FROM invoices WHERE status = 'finalized' AND subtotal_minor > 2000`); n != b.N {
		b.Fatalf("%d invoices of %d customers\n%s", n, b.N, w.log)
	}
}
