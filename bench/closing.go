package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"quotad/internal/postgres"
	"quotad/internal/quota/model"
)

// closing is what it takes to close the periods of many customers at once, and what hits of
// others keep meanwhile.
type closing struct {
	Customers int
	Seconds   float64   // until nothing was due
	Before    underLoad // of the main row's load
	Meanwhile underLoad // of the same load
	Longest   float64   // a transaction of quotad was open
	Few       float64   // VmHWM of quotad
	Many      float64
}

// underLoad is what a load came to over its rounds.
type underLoad struct {
	Hits spread // a second, in a closed loop
	P99  spread // ms, in an open loop at half of the rate from before
	Rate spread // share of the open loop's requests
}

// String is a sentence.
func (c *closing) String() string {
	return fmt.Sprintf("%s customers were closed in %.0f s: %.0f a second. Hits kept %.2f of their rate (%s and then %s a second); at half the peak p99 was %.1f and then %.1f ms, %.2f in time. The longest transaction was open for %.0f ms. quotad's memory was %.0f MB at most before, and then %.0f.\n",
		whole(float64(c.Customers)), c.Seconds, float64(c.Customers)/c.Seconds, per(c.Meanwhile.Hits.Median, c.Before.Hits.Median),
		whole(c.Before.Hits.Median), whole(c.Meanwhile.Hits.Median), c.Before.P99.Median, c.Meanwhile.P99.Median, c.Meanwhile.Rate.Median, c.Longest, c.Few, c.Many)
}

// The customers that are billed: their period ended at $1, a month after it began at $2. They
// are due when they are told to be.
const (
	insertBilled = `
	INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change)
	SELECT 'billed-' || i, 'Billed', p.id, p.latest_version, 'UTC', $1, n.number
	FROM plans p, change_number n, generate_series($2::bigint, $3::bigint) i WHERE p.key = 'billed' RETURNING id`
	insertBilling = `
	WITH billed AS (SELECT c.*, p.latest_version FROM customers c JOIN plans p ON p.id = c.plan_id WHERE c.id = ANY ($3::bigint[])),
	terms AS (
		INSERT INTO customer_terms (customer_id, change, how, from_at, limits_at, plan_id, joined_version, timezone, billing_anchor)
		SELECT id, change, 'named', 0, 0, plan_id, joined_version, timezone, billing_anchor FROM billed),
	accounts AS (
		INSERT INTO billing_accounts (customer_id, currency, starts_at, starts_set_at, change) SELECT id, 'USD', $2::bigint, $2, change FROM billed)
	INSERT INTO open_periods (customer_id, start_at, end_at, full_start, full_end, known_end, plan_id, version, due_at)
	SELECT id, $2, $1::bigint, $2, $1, $1, plan_id, joined_version, 9223372036854775807 FROM billed`
	insertUsed = `
	WITH used AS (SELECT c.shard, c.id, m.id AS meter FROM unnest($2::smallint[], $3::bigint[]) AS c (shard, id), meters m WHERE m.key LIKE 'billed-%'),
	running AS (
		INSERT INTO counters (shard, customer, meter, at, hour, units, total, version)
		SELECT shard, id, meter, $1::bigint - 1800000000, $1 - 3600000000, 60, 660, 60 FROM used)
	INSERT INTO usage (shard, customer, meter, hour, admitted)
	SELECT shard, id, meter, $1 - h * 3600000000, 10 FROM used, generate_series(2, 61) h`
	letDue = `
	UPDATE open_periods SET due_at = end_at WHERE customer_id IN (
		SELECT customer_id FROM open_periods WHERE due_at = 9223372036854775807 AND end_at = $1 LIMIT $2)`
)

// billedPlan has four priced meters with a limit each.
const billedPlan = `{"name":"Billed","currency":"USD","interval":"month","base_price_minor":2000,"limits":[
	{"name":"a","meter":"billed-a","algorithm":"fixed_window","limit":999999999,"window":"1h"},
	{"name":"b","meter":"billed-b","algorithm":"fixed_window","limit":999999999,"window":"1h"},
	{"name":"c","meter":"billed-c","algorithm":"fixed_window","limit":999999999,"window":"1h"},
	{"name":"d","meter":"billed-d","algorithm":"fixed_window","limit":999999999,"window":"1h"}],"prices":[
	{"meter":"billed-a","model":"per_unit","unit_price":"0.01"},
	{"meter":"billed-b","model":"graduated","tiers":[{"up_to":100,"unit_price":"0.02"},{"up_to":null,"unit_price":"0.01"}]},
	{"meter":"billed-c","model":"volume","tiers":[{"up_to":100,"unit_price":"0.02"},{"up_to":null,"unit_price":"0.01"}]},
	{"meter":"billed-d","model":"package","package_size":100,"package_price":"1"}]}`

// billedChunk is how many customers one statement makes.
const billedChunk = 5000

// makeBilled makes n customers whose period ended at the last full hour, with 60 usage hours of
// each meter and a running one.
func (b *bench) makeBilled(ctx context.Context, n int) (end int64, err error) {
	for _, m := range []string{"a", "b", "c", "d"} {
		if err := b.service.put(ctx, "/v1/meters/billed-"+m, `{"unit":"call"}`); err != nil {
			return 0, err
		}
	}
	if err := b.service.put(ctx, "/v1/plans/billed", billedPlan); err != nil {
		return 0, err
	}
	at := time.Now().UTC().Truncate(time.Hour)
	end = at.UnixMicro()
	for from := 1; from <= n; from += billedChunk {
		rows, _ := b.service.db.Query(ctx, insertBilled, at.Format("2006-01-02T15:04:05"), from, min(from+billedChunk-1, n))
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return 0, err
		}
		shards := make([]int16, len(ids))
		for i, id := range ids {
			shards[i] = model.Shard(id)
		}
		_, billing := b.service.db.Exec(ctx, insertBilling, end, at.AddDate(0, -1, 0).UnixMicro(), ids)
		_, used := b.service.db.Exec(ctx, insertUsed, end, shards, ids)
		if err := errors.Join(billing, used); err != nil {
			return 0, err
		}
	}
	_, err = b.service.db.Exec(ctx, `VACUUM ANALYZE`)
	return end, err
}

// aloneRuns is how often the load runs alone in a round. Its p99 moves more than anything else.
const aloneRuns = 3

// closeMany measures the main row's load without and with the closing of many customers.
func (b *bench) closeMany(ctx context.Context) error {
	r := mainRowOf()
	if err := b.service.scale(ctx, 1); err != nil {
		return err
	}
	if err := b.makeSet(ctx, r.set); err != nil {
		return err
	}
	end, err := b.makeBilled(ctx, b.closing)
	if err != nil {
		return fmt.Errorf("make customers that are billed: %w", err)
	}
	// So many rows have used up the files of WAL, and a new file stops all commits for 20 ms. The
	// checkpoint of a stop makes old files ready for use again, as checkpoints do in service.
	if err := b.service.restart(ctx); err != nil {
		return err
	}
	m := &match{row: r, single: r, subject: []string{b.service.nodes[0].address}}
	if _, err := b.warmRow(ctx, m); err != nil {
		return err
	}
	c := &closing{Customers: b.closing}
	var before, meanwhile loads
	for i := range b.rounds { // in turn, for the machine's speed moves
		for range aloneRuns {
			if err := before.both(ctx, b, m, 0); err != nil {
				return err
			}
		}
		if i == 0 {
			c.Few = peak(b.service.nodes[0])
		}
		if err := b.closeUnder(ctx, m, c, end, &meanwhile, spreadOf(before.hits).Median/2); err != nil {
			return err
		}
	}
	c.Before, c.Meanwhile, c.Many = before.sums(), meanwhile.sums(), peak(b.service.nodes[0])
	if _, err := fmt.Fprint(b.out, "    ", c); err != nil {
		return err
	}
	return b.checkClosed(ctx, c)
}

// peak is the most memory that a node has had, MB.
func peak(n *node) float64 {
	_, most, _ := resident(n.pid())
	return float64(most) / mb
}

// closeUnder lets a share of the customers be due, and keeps up the load until none is.
func (b *bench) closeUnder(ctx context.Context, m *match, c *closing, end int64, to *loads, rate float64) error {
	began := time.Now()
	for left := (c.Customers + b.rounds - 1) / b.rounds; left > 0; left -= billedChunk {
		if _, err := b.service.db.Exec(ctx, letDue, end, min(left, billedChunk)); err != nil {
			return err
		}
	}
	over, all := make(chan struct{}), errgroup.Group{}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	all.Go(func() error {
		defer close(over)
		longest, err := b.watchClosing(watching)
		c.Longest, c.Seconds = max(c.Longest, longest), c.Seconds+time.Since(began).Seconds()
		return err
	})
	var err error
	for ended := false; !ended && err == nil; {
		var one loads
		err = one.both(ctx, b, m, rate)
		select {
		case <-over:
			ended = true
		default:
		}
		if err == nil && (!ended || len(to.hits) == 0) { // else a part of it was beside nothing
			to.hits, to.p99, to.rate = append(to.hits, one.hits...), append(to.p99, one.p99...), append(to.rate, one.rate...)
		}
	}
	if err != nil {
		cancel()
	}
	return errors.Join(err, all.Wait())
}

// The first that is due comes from its index. EXISTS reads the table from its start, past all that
// are closed, and takes about a sixth of a processor from what is measured.
const watchSQL = `
	SELECT (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8 * 1000 FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> ALL ($1) AND backend_type = 'client backend' AND state <> 'idle'),
	(SELECT min(due_at) FROM open_periods WHERE clock_id IS NULL) > (extract(epoch FROM now()) * 1000000)::bigint`

// watchEvery is how often transactions are looked at. A look takes time from the hits beside it.
const watchEvery = 50 * time.Millisecond

// watchClosing waits until nothing is due, and says for how many ms the oldest transaction was
// open.
func (b *bench) watchClosing(ctx context.Context) (longest float64, err error) {
	url := b.service.db.Config().ConnString()
	conn, err := postgres.Connect(ctx, url, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	own := []uint32{conn.PgConn().PID(), b.service.db.PgConn().PID()}
	for over := false; !over; {
		var open float64
		if err := conn.QueryRow(ctx, watchSQL, own).Scan(&open, &over); err != nil {
			return 0, err
		}
		longest = max(longest, open)
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(watchEvery):
		}
	}
	return longest, nil
}

const countClosed = `
	SELECT count(*) FROM periods p JOIN invoices i ON i.customer_id = p.customer_id AND i.n = p.n
	WHERE p.n = 0 AND i.kind = 'period' AND i.subtotal_minor = 2000 + 660 + 760 + 660 + 700`

// mostOpen bounds how long a transaction is open, ms: counters are not pruned meanwhile.
const mostOpen = 500

var errClosing = errors.New("closing is not what it should be")

func (b *bench) checkClosed(ctx context.Context, c *closing) error {
	var closed int
	if err := b.service.db.QueryRow(ctx, countClosed).Scan(&closed); err != nil {
		return err
	}
	if closed != c.Customers {
		return fmt.Errorf("%w: %d of %d customers have their invoice", errClosing, closed, c.Customers)
	}
	if c.Longest > mostOpen {
		return fmt.Errorf("%w: a transaction was open for %.0f ms\n%s", errClosing, c.Longest, c)
	}
	return nil
}

// loads gathers what rounds of the main row's load come to.
type loads struct {
	hits, p99, rate []float64
}

// both runs the load in a closed loop, and in an open one of a rate; 0 is half of the closed
// one's.
func (l *loads) both(ctx context.Context, b *bench, m *match, rate float64) error {
	run, err := b.load(ctx, m, m.row, m.subject, b.each)
	if err != nil {
		return err
	}
	if rate == 0 {
		rate = run.rate() / 2
	}
	b.seed++
	o := &openRun{
		template: templateOf(m.row, b.service.backend, b.runID()),
		rate:     rate, conns: m.row.connections(), took: b.each, seed: b.seed,
	}
	latencies, err := o.run(ctx, m.subject[0])
	if latencies == nil || err != nil && !errors.Is(err, errRate) {
		return err
	}
	l.hits = append(l.hits, run.rate())
	l.p99 = append(l.p99, float64(latencies.ValueAtQuantile(99))/1e3)
	l.rate = append(l.rate, per(float64(o.inTime), float64(o.total)))
	return pause(ctx)
}

func (l *loads) sums() underLoad {
	return underLoad{spreadOf(l.hits), spreadOf(l.p99), spreadOf(l.rate)}
}
