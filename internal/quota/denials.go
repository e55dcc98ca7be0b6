package quota

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/quota/model"
)

// denials collects refused units and adds them every second to the usage table and to the refusals table. Both
// tables are statistics: a crash, or a database that is out of reach, may lose the last second.
type denials struct {
	pool         *pgxpool.Pool
	now          func(context.Context) (int64, error)
	limit        time.Duration // of one statement
	stopping     chan struct{}
	once         sync.Once
	lost         atomic.Int64 // units that could not be written as denied
	lostRefusals atomic.Int64 // and as refused by a limit

	mu      sync.Mutex
	minutes map[minuteKey]*refusedMinute
	rows    int // of limits, in all minutes
}

// maxDenials bounds the number of minutes that are collected between two writes.
const maxDenials = 100_000

// statementLimit bounds a statement that writes the collected minutes.
const statementLimit = 5 * time.Second

func newDenials(pool *pgxpool.Pool, now func(context.Context) (int64, error), patience time.Duration) *denials {
	return &denials{pool: pool, now: now, limit: max(statementLimit, patience), stopping: make(chan struct{}), minutes: make(map[minuteKey]*refusedMinute)}
}

// add adds a refused hit that was judged in the hour that starts at hour.
func (d *denials) add(refused *model.Decision, hour int64) {
	own := refused.Target.Counters[0].Key
	key := minuteKey{model.HourKey{Customer: own.Customer, Meter: own.Meter, Hour: hour}, refused.At - floorMod(refused.At, minute)}
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.minutes[key]
	if m == nil {
		if len(d.minutes) >= maxDenials {
			d.lost.Add(refused.Cost)
			d.lostRefusals.Add(refused.Cost)
			return
		}
		m = new(refusedMinute)
		d.minutes[key] = m
	}
	m.units += min(refused.Cost, math.MaxInt64-m.units)
	added, over := m.count(refused, maxRefusals-d.rows)
	if d.rows += added; over {
		d.lostRefusals.Add(refused.Cost)
	}
}

func (d *denials) stop() { d.once.Do(func() { close(d.stopping) }) }

// run writes the collected minutes every second until stop is closed or ctx ends, and once more after that.
func (d *denials) run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for more := true; more; {
		select {
		case <-tick.C:
		case <-d.stopping:
			more = false
		case <-ctx.Done():
			return
		}
		if err := d.write(ctx); err != nil {
			log.Warn("the statistic of denied units could not be written", "error", err)
		}
	}
}

// The rows are in the order in which lanes write usage, so that the two never deadlock.
const denySQL = `
INSERT INTO usage (shard, customer, meter, hour, denied)
SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[])
ON CONFLICT (shard, customer, meter, hour)
DO UPDATE SET denied = least(usage.denied::numeric + excluded.denied, 9223372036854775807)`

func (d *denials) write(ctx context.Context) (err error) {
	d.mu.Lock()
	gathered := d.minutes
	if len(gathered) == 0 { // it stays the map that add fills: not to be read without the lock
		d.mu.Unlock()
		return nil
	}
	d.minutes, d.rows = make(map[minuteKey]*refusedMinute), 0
	d.mu.Unlock()
	hours := make(map[model.HourKey]int64, len(gathered))
	for key, m := range gathered {
		hours[key.HourKey] += min(m.units, math.MaxInt64-hours[key.HourKey])
	}
	// A statement writes few rows, because lanes that book an hour wait for the rows that it locks.
	for rows := range slices.Chunk(sortedDenials(hours), 1000) {
		err = errors.Join(err, d.writeRows(ctx, rows, hours))
	}
	for rows := range slices.Chunk(sortedRefusals(gathered), 1000) {
		err = errors.Join(err, d.writeRefusals(ctx, rows))
	}
	return err
}

func (d *denials) writeRows(ctx context.Context, rows []model.HourKey, units map[model.HourKey]int64) error {
	var shard []int16
	var customer, hour, denied []int64
	var meter []int32
	var sum int64
	for _, k := range rows {
		shard = append(shard, model.Shard(k.Customer))
		customer, meter, hour = append(customer, k.Customer), append(meter, k.Meter), append(hour, k.Hour)
		denied = append(denied, units[k])
		sum += units[k]
	}
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	_, err := d.pool.Exec(ctx, denySQL, shard, customer, meter, hour, denied)
	if err != nil {
		d.lost.Add(sum)
	}
	return err
}

func sortedDenials(m map[model.HourKey]int64) []model.HourKey {
	keys := make([]model.HourKey, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, model.CompareHours)
	return keys
}
