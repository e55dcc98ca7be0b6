package quota

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// The overview reads the data of many customers at once with the following functions.

const (
	// latestShards is the number of shards that one statement reads.
	latestShards = 32
	// latestOfShard bounds the number of counters of a shard that are read, including counters of attribute
	// values: a million in all.
	latestOfShard = 1000
)

// Each shard's rows are found by the prefix of the key. The parameters are $1 the shards, $2 the counters of
// each shard, $3 the instant after which a counter belongs to a test clock, and $4 the number of rows.
const latestSQL = `
WITH page AS MATERIALIZED (
	SELECT i.shard, c.customer, c.meter, c.attribute, c.at
	FROM unnest($1::smallint[]) AS i(shard),
	LATERAL (SELECT customer, meter, attribute, at FROM counters
		WHERE shard = i.shard AND (customer, meter, attribute) > (0, 0, '')
		ORDER BY customer, meter, attribute LIMIT $2::bigint) c
), shards AS (
	SELECT count(*) AS n, count(*) FILTER (WHERE attribute = '') AS own FROM page GROUP BY shard
), own AS (
	SELECT customer, meter, at FROM page WHERE attribute = '' AND at <= $3::bigint ORDER BY at DESC, customer, meter LIMIT $4::bigint
)
SELECT s.own, s.cut, coalesce(o.customer, 0), coalesce(o.meter, 0), coalesce(o.at, 0)
FROM (SELECT coalesce(sum(own), 0)::bigint AS own, coalesce(bool_or(n >= $2), false) AS cut FROM shards) s LEFT JOIN own o ON true`

// Latest lists customers' own counters, the most recently charged counter first.
type Latest struct {
	Keys   []model.CounterKey
	Passed int64 // own counters that were looked at
	All    bool  // these were all that there are
}

// latestAhead is the distance in µs by which a counter may be ahead of the clock.
const latestAhead = int64(60e6)

// Latest returns at most most counters, the most recently charged ones. It reads a million counters at most, and
// stops when ctx ends. It starts at a random shard.
func (e *Engine) Latest(ctx context.Context, most int) (l Latest, err error) {
	now, err := e.now(ctx)
	if err != nil {
		return l, err
	}
	type row struct {
		Own      int64
		Cut      bool
		Customer int64
		Meter    int32
		At       int64
	}
	var found []row
	l.All = true
	first := rand.N(int16(model.Shards)) //nolint:gosec // not a secret
	for done := int16(0); done < model.Shards; done += latestShards {
		shards := make([]int16, latestShards)
		for i := range shards {
			shards[i] = (first + done + int16(i)) % model.Shards
		}
		part, err := collect(ctx, e.options.Pool, e.readTries, pgx.RowToStructByPos[row], latestSQL, shards, latestOfShard, now+latestAhead, most)
		if err != nil && ctx.Err() != nil && done > 0 {
			l.All = false
			break // what was read so far is told
		}
		if err != nil {
			return l, err
		}
		l.Passed, l.All = l.Passed+part[0].Own, l.All && !part[0].Cut
		found = append(found, slices.DeleteFunc(part, func(r row) bool { return r.Customer == 0 })...)
	}
	slices.SortFunc(found, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(a.Customer, b.Customer), cmp.Compare(a.Meter, b.Meter))
	})
	for _, r := range found[:min(len(found), most)] {
		l.Keys = append(l.Keys, model.CounterKey{Customer: r.Customer, Meter: r.Meter})
	}
	return l, nil
}

// Full is the used part of a customer's limit.
type Full struct {
	Customer int64
	Meter    int32
	Limit    *model.Limit
	Used, Of int64 // units; Of is above 0
}

// Compare orders by the used part.
func (f *Full) Compare(other *Full) int {
	high, low := bits.Mul64(uint64(f.Used), uint64(other.Of))
	otherHigh, otherLow := bits.Mul64(uint64(other.Used), uint64(f.Of))
	return cmp.Or(cmp.Compare(high, otherHigh), cmp.Compare(low, otherLow))
}

// Percent returns the used part in hundredths, rounded down, up to 2⁶³−1.
func (f *Full) Percent() int64 {
	whole, rest := f.Used/f.Of, f.Used%f.Of
	if whole >= math.MaxInt64/100 {
		return math.MaxInt64
	}
	return whole*100 + rest*100/f.Of
}

// Fullness returns, with one statement, the most used limit of each target that has any usage. It leaves out
// shadow limits, which refuse nothing, and limits per attribute, because each value has a quota of its own. It
// also leaves out targets that a newer change concerns, targets on test clocks, and targets whose rows cannot be
// read.
func (e *Engine) Fullness(ctx context.Context, targets []*model.Target) ([]Full, error) {
	var hits []model.Hit
	for _, t := range targets {
		if t != nil && t.Clock == nil {
			hits = append(hits, model.Hit{Target: t.For(nil).ForReservations()})
		}
	}
	results := make([]queue.Result, len(hits))
	e.lookAll(ctx, hits, results)
	var all []Full
	for i := range results {
		if _, stale := errors.AsType[*model.StaleError](results[i].Err); stale || errors.Is(results[i].Err, model.ErrMalformed) {
			continue
		}
		if results[i].Err != nil {
			return nil, results[i].Err
		}
		if f := fullest(&results[i].Decision); f.Limit != nil {
			all = append(all, f)
		}
	}
	return all, nil
}

// fullest returns the most used limit of a look. Its Limit is nil if no limit is used.
func fullest(d *model.Decision) (most Full) {
	own := d.Target.Counters[0].Key
	for i := range d.NumViews() {
		v := d.View(i)
		of := v.Limit.Capacity()
		if v.Limit.Mode == model.Shadow || v.Limit.Per != "" || of <= 0 || v.Used <= 0 {
			continue
		}
		f := Full{own.Customer, own.Meter, v.Limit, v.Used, of}
		if most.Limit == nil || f.Compare(&most) > 0 {
			most = f
		}
	}
	return most
}
