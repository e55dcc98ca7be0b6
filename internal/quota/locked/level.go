package locked

import (
	"context"
	"maps"
	"slices"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
	"quotad/internal/quota/session"
)

// TooHighError reports that the level of a level meter would exceed its maximum. Nothing was done.
type TooHighError struct{ Most int64 }

func (e *TooHighError) Error() string {
	return "a level is at most 10^15-1; nothing was done"
}

// SetLevel sets a level, 0 … MaxNumber. If the target has an attribute value, the level is the value's;
// otherwise it is the meter's. A rise is judged as a hit of the difference, and a fall is always allowed. The
// decision of a rise has the difference as its cost, and any other decision has no cost.
//
// Errors: ErrNoLevel, *TooHighError, and those of Decide.
func (w *Worker) SetLevel(ctx context.Context, from queue.SenderID, t *model.Target, level int64) (model.Decision, error) {
	return submit(w, w.newOperation(from, t, model.ID{}), func(tx *transaction) (model.Decision, error) {
		return tx.setLevel(t, level)
	}).result(ctx)
}

func (tx *transaction) setLevel(t *model.Target, level int64) (model.Decision, error) {
	if !t.Level {
		return model.Decision{}, ErrNoLevel
	}
	counters, instant, err := tx.open(t)
	if err != nil {
		return model.Decision{}, err
	}
	if rise := level - t.Held(totalsOf(counters)); rise > 0 {
		return tx.hit(&model.Hit{Target: t, Cost: rise})
	}
	err = tx.makeLevel(t, counters, level, instant)
	return tx.judge(t, counters, 0), err
}

// makeLevel sets a level. If neither the level nor the generation of the values changes, makeLevel writes
// nothing. Errors: those of addLevel.
func (tx *transaction) makeLevel(t *model.Target, counters []*lockedRow, level, instant int64) error {
	rise := level - t.Held(totalsOf(counters))
	if rise == 0 && model.NextGeneration(generationsOf(counters)) == counters[0].generation {
		return nil
	}
	return tx.addLevel(t, counters, rise, instant)
}

// lower subtracts at most the given units from a level, and returns the number of subtracted units.
func (tx *transaction) lower(t *model.Target, counters []*lockedRow, units, instant int64) (int64, error) {
	units = min(units, t.Held(totalsOf(counters)))
	if units <= 0 {
		return 0, nil
	}
	return units, tx.addLevel(t, counters, -units, instant)
}

// addLevel adds units to a level from an instant on. Negative units are subtracted. Errors: *ManyValuesError and
// *TooHighError.
func (tx *transaction) addLevel(t *model.Target, counters []*lockedRow, units, instant int64) error {
	own := counters[0]
	if units > model.MaxNumber-own.total {
		return &TooHighError{model.MaxNumber}
	}
	if err := tx.makeValues(counters); err != nil {
		return err
	}
	totals, generation := totalsOf(counters), model.NextGeneration(generationsOf(counters))
	if generation != own.generation {
		clear(totals[1:])
	}
	hour, _ := t.RunningHour(instant)
	for i, c := range counters {
		if c.total, c.generation = totals[i], generation; t.Moves(i) {
			c.total += units
		}
		tx.turn(c, hour)
		c.At, c.freed = instant, c.freed || units < 0
		c.touch()
	}
	if units != 0 { // otherwise only the generation has changed
		tx.levels[own.key] = level{instant, own.total}
	}
	tx.showLevels(t, counters)
	return nil
}

// showLevels writes the levels into the rows' state.
func (tx *transaction) showLevels(t *model.Target, counters []*lockedRow) {
	rows := rowsOf(counters)
	t.Levels(rows, totalsOf(counters))
	for i, c := range counters {
		c.State = rows[i].State
	}
}

// totalsOf returns the levels of the counters of a level meter's target.
func totalsOf(counters []*lockedRow) []int64 {
	totals := make([]int64, len(counters))
	for i, c := range counters {
		totals[i] = c.total
	}
	return model.LevelTotals(totals, generationsOf(counters))
}

func generationsOf(counters []*lockedRow) []int64 {
	generations := make([]int64, len(counters))
	for i, c := range counters {
		generations[i] = c.generation
	}
	return generations
}

// level is the level of a meter from an instant on, µs.
type level struct{ at, units int64 }

// changedLevels returns the own counters whose levels changed, in the order of their rows.
func (tx *transaction) changedLevels() []model.CounterKey {
	return slices.SortedFunc(maps.Keys(tx.levels), model.CompareKeys)
}

func (tx *transaction) encodeLevels(p *session.Params, keys []model.CounterKey) {
	hours, units := make(hourColumns, len(keys)), make([]int64, len(keys))
	for i, k := range keys {
		hours[i], units[i] = model.HourKey{Customer: k.Customer, Meter: k.Meter, Hour: tx.levels[k].at}, tx.levels[k].units
	}
	hours.encode(p)
	p.Int8(units)
}

// levelsSQL writes levels from an instant on. Of several changes at one instant only the last change counts.
// Only a transaction that has locked the own counter's row writes its levels, and no instant is before the last
// written instant. integral is the integral of the level up to the instant, in units · µs. The parameters are
// $1–$4 shard, customer, meter and instant, and $5 units.
const levelsSQL = `
INSERT INTO levels (shard, customer, meter, at, level, integral)
SELECT i.shard, i.customer, i.meter, i.at, i.level, coalesce(p.integral + p.level::numeric * (i.at - p.at), 0)
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[]) AS i(shard, customer, meter, at, level)
LEFT JOIN LATERAL (
	SELECT at, level, integral FROM levels
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND at < i.at
	ORDER BY at DESC LIMIT 1) p ON true
ON CONFLICT (shard, customer, meter, at) DO UPDATE SET level = excluded.level`
