package locked

import (
	"context"

	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
)

// judged is a target with thresholds that the running operation has opened.
type judged struct {
	t       *model.Target
	own     *lockedRow
	instant int64  // the instant of the judgment, µs
	version int64  // the version of the own counter before the operation
	refused uint32 // see model.Target.Raise
}

// reached is a threshold to be written, and its own counter.
type reached struct {
	model.CounterKey
	model.Raised
	at, version int64
	written     int64 // the time of the write by PostgreSQL's clock, µs
	clock       string
}

// watch records that an operation has opened a target, before the operation changes anything. After the operation,
// raise checks the target's thresholds.
func (tx *transaction) watch(t *model.Target, own *lockedRow, instant int64) {
	if t.Notifies() {
		tx.judged = append(tx.judged, judged{t: t, own: own, instant: instant, version: own.Version})
	}
}

// refuse records the limits that have refused a decision. Call it after watch.
func (tx *transaction) refuse(d *model.Decision) {
	for i := range tx.judged {
		if j := &tx.judged[i]; j.t == d.Target {
			j.refused |= d.RefusedOwn()
		}
	}
}

// raise raises the thresholds that the completed operation has reached, in the operation's own transaction.
// Therefore a threshold is raised if and only if the charge is committed.
func (tx *transaction) raise() {
	for i := range tx.judged {
		j := &tx.judged[i]
		all, changed := j.t.Raise(&j.own.Row, j.instant, j.refused)
		if changed && j.own.Version <= j.version {
			j.own.touch() // otherwise the swap of another node would not notice the change of the row
		}
		j.own.dirty = j.own.dirty || changed
		// In real time, the instants of a counter rise with its charges, even if the clocks of nodes differ.
		clock, written := "", max(tx.now, j.instant)
		if j.t.Clock != nil {
			clock, written = j.t.Clock.Key, tx.now
		}
		for _, one := range all {
			tx.reached = append(tx.reached, reached{j.own.key, one, j.instant, j.own.Version, written, clock})
		}
	}
}

// Notify queues an operation that raises the thresholds that the customer's own counter has reached since its
// limits were edited. It returns a function that waits for the operation. A missing counter has reached no
// threshold. Errors: those of Decide.
func (w *Worker) Notify(t *model.Target) (wait func(context.Context) error) {
	p := submit(w, w.newOperation("", t, model.ID{}), func(tx *transaction) (struct{}, error) {
		if own := tx.counters[t.Counters[0].Key]; own != nil && !own.held && !own.there {
			return struct{}{}, nil
		}
		_, _, err := tx.open(t)
		return struct{}{}, err
	})
	return func(ctx context.Context) error {
		_, err := p.result(ctx)
		return err
	}
}

func encodeReached(p *session.Params, all []reached) {
	var keys session.Columns
	var columns [9][]int64
	percent, name, clock := make([]int16, len(all)), make([]string, len(all)), make([]string, len(all))
	for i := range all {
		r := &all[i]
		keys.Add(r.CounterKey)
		burst, reset := int64(0), r.Reset
		if r.Limit.Algorithm.Refills() {
			burst = r.Limit.Burst
		}
		if reset == model.NoReset {
			reset = 0
		}
		for n, v := range [...]int64{r.at, r.version, r.Used, r.Limit.Limit, burst, r.Limit.AmountMinor(), r.Start, reset, r.written} {
			columns[n] = append(columns[n], v)
		}
		percent[i], name[i], clock[i] = int16(r.Percent), r.Limit.Name, r.clock
	}
	p.Int2(keys.Shard)
	p.Int8(keys.Customer)
	p.Int4(keys.Meter)
	for _, column := range columns {
		p.Int8(column)
	}
	p.Int2(percent)
	p.Text(name)
	p.Text(clock)
}

// The parameters are $1–$3 shard, customer and meter, and $4–$15 the columns.
const reachSQL = `
INSERT INTO thresholds (shard, customer, meter, at, version, used, units, burst, amount_minor, starts, resets, written_at, percent, name, clock)
SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::integer[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
                     $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::smallint[], $14::text[], $15::text[])`
