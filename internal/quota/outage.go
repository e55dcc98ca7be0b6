package quota

import (
	"quotad/internal/quota/model"
)

// probeSQL requires what charging requires: the locks of all written tables, and a commit that is durable, also
// on a synchronous standby. It writes a message to the WAL and no row.
const probeSQL = `BEGIN;
SET LOCAL lock_timeout = '1800ms';
LOCK TABLE counters, usage, holds, adjustments, receipts_0, receipts_1, receipts_2 IN ROW EXCLUSIVE MODE;
SELECT pg_logical_emit_message(true, 'quotad', '');
COMMIT`

// WithoutDatabase decides a hit in an outage, at now, µs since the Unix epoch. Its limits are counted in this
// node's memory, starting from the rows that the node knows. Nothing is charged in the database, and nothing in
// memory if look is true.
func (e *Engine) WithoutDatabase(t *model.Target, now, cost int64, look bool) model.Decision {
	return e.local.Decide(t, now, cost, look, func(i int) (model.Row, bool) { return e.known(t, i, now) })
}

// known returns the row of a target's i-th counter, as far as the node knows it. It excludes units of
// reservations that may have ended meanwhile.
func (e *Engine) known(t *model.Target, i int, now int64) (row model.Row, knows bool) {
	if i == 0 {
		var own model.Known
		if there, _ := t.Recall(&own, e.options.Stopwatch()); there && !own.Large && !own.Missing {
			row, knows = own.Row, true
		}
	}
	if refused, there := e.node.Memory.Last(t.Counters[i].Key, now); there && (!knows || refused.Version > row.Version) {
		row, knows = refused, true
	}
	if row.Holds != nil && row.Holds.Due() <= t.Instant(now) {
		return model.Row{}, false
	}
	return row, knows
}
