package locked

import "quotad/internal/quota/model"

// TooHighError says that a level meter would hold more than it can. Nothing was done.
type TooHighError struct{ Most int64 }

func (e *TooHighError) Error() string {
	return "a level is at most 10^15-1; nothing was done"
}

// makeLevel makes what is held a level. If neither the level nor the generation of the values changes,
// makeLevel writes nothing. Errors: those of addLevel.
func (tx *transaction) makeLevel(t *model.Target, counters []*lockedRow, level, instant int64) error {
	rise := level - t.Held(totalsOf(counters))
	if rise == 0 && model.NextGeneration(generationsOf(counters)) == counters[0].generation {
		return nil
	}
	return tx.addLevel(t, counters, rise, instant)
}

// lower takes up to so many units off what is held, and returns how many.
func (tx *transaction) lower(t *model.Target, counters []*lockedRow, units, instant int64) (int64, error) {
	units = min(units, t.Held(totalsOf(counters)))
	if units <= 0 {
		return 0, nil
	}
	return units, tx.addLevel(t, counters, -units, instant)
}

// addLevel adds units to what is held from an instant on; units below 0 are taken off. Errors:
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
	if units != 0 { // else only the generation has changed
		tx.levels[own.key] = level{instant, own.total}
	}
	tx.showLevels(t, counters)
	return nil
}

// showLevels has the rows of a level meter's target say what is held.
func (tx *transaction) showLevels(t *model.Target, counters []*lockedRow) {
	rows := rowsOf(counters)
	t.Levels(rows, totalsOf(counters))
	for i, c := range counters {
		c.State = rows[i].State
	}
}

// totalsOf returns what the counters of a level meter's target hold.
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

// level is what a meter holds from an instant on, µs.
type level struct{ at, units int64 }

// levelsSQL writes what is held from an instant on. Of several changes at one instant only the last one
// counts. Who holds the own counter's row writes them, and no instant is before the last one's.
// integral is what was held before, in units · µs. $1–$4 shard, customer, meter and instant, $5 units.
const levelsSQL = `
INSERT INTO levels (shard, customer, meter, at, level, integral)
SELECT i.shard, i.customer, i.meter, i.at, i.level, coalesce(p.integral + p.level::numeric * (i.at - p.at), 0)
FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[]) AS i(shard, customer, meter, at, level)
LEFT JOIN LATERAL (
	SELECT at, level, integral FROM levels
	WHERE shard = i.shard AND customer = i.customer AND meter = i.meter AND at < i.at
	ORDER BY at DESC LIMIT 1) p ON true
ON CONFLICT (shard, customer, meter, at) DO UPDATE SET level = excluded.level`
