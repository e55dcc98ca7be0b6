package locked

import "quotad/internal/quota/model"

// TooHighError reports that the level of a level meter would exceed its maximum. Nothing was done.
type TooHighError struct{ Most int64 }

func (e *TooHighError) Error() string {
	return "a level is at most 10^15-1; nothing was done"
}

// makeLevel sets the level. If neither the level nor the generation of the values changes, makeLevel writes
// nothing. Errors: those of addLevel.
func (tx *transaction) makeLevel(t *model.Target, counters []*lockedRow, level, instant int64) error {
	rise := level - t.Held(totalsOf(counters))
	if rise == 0 && model.NextGeneration(generationsOf(counters)) == counters[0].generation {
		return nil
	}
	return tx.addLevel(t, counters, rise, instant)
}

// lower subtracts at most the given units from the level, and returns the number of subtracted units.
func (tx *transaction) lower(t *model.Target, counters []*lockedRow, units, instant int64) (int64, error) {
	units = min(units, t.Held(totalsOf(counters)))
	if units <= 0 {
		return 0, nil
	}
	return units, tx.addLevel(t, counters, -units, instant)
}

// addLevel adds units to the level from an instant on, or subtracts them if units is negative. Errors:
// *ManyValuesError and *TooHighError.
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

// showLevels sets the states of the rows of a level meter's target to the levels.
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

// levelsSQL writes levels from an instant on. If the level changes several times at one instant, only the last
// change counts. Levels are written under the lock of the own counter's row, and no instant is before the previous
// instant. integral is the integral of the level before the instant, in units · µs. The parameters are $1–$4
// shard, customer, meter and instant, and $5 units.
const levelsSQL = `
INSERT INTO levels (shard, customer, meter, at, level, integral)
SELECT i.shard, i.customer, i.meter, i.at, i.level, coalesce(p.integral + p.level::numeric * (i.at - p.at), 0)
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[]) AS i(shard, customer, meter, at, level)
LEFT JOIN LATERAL (
	SELECT at, level, integral FROM levels
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND at < i.at
	ORDER BY at DESC LIMIT 1) p ON true
ON CONFLICT (shard, customer, meter, at) DO UPDATE SET level = excluded.level`
