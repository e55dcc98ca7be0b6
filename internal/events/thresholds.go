package events

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/client"
	"quotad/internal/postgres"
	"quotad/internal/quota/upkeep"
)

// ofMeter is a row of outbox about a meter whose key has not been read yet.
type ofMeter struct {
	row
	Meter   int32 `json:"meter"`
	Written int64 `json:"written_at"`
}

// insertOfMeters inserts events in their order, with the keys of their meters. A meter is never removed.
const insertOfMeters = `
	INSERT INTO outbox (written_at, type, at, customer, test_clock, data)
	SELECT r.written_at, r.type, r.at, r.customer, r.test_clock, jsonb_build_object('meter', m.key) || r.data
	FROM ROWS FROM (jsonb_to_recordset($1) AS (
		written_at bigint, type text, at bigint, customer bigint, test_clock text, data jsonb, meter integer)) WITH ORDINALITY AS r
	JOIN meters m ON m.id = r.meter ORDER BY r.ordinality`

// moveThresholds moves at most most thresholds that charges have reached into the outbox, and returns the number
// that it moved. It reads the thresholds through the engine, because no statement may name tables of both
// packages.
func moveThresholds(ctx context.Context, tx pgx.Tx, most int) (moved int, err error) {
	all, err := upkeep.TakeThresholds(ctx, tx, most)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	rows := make([]ofMeter, len(all))
	type counter struct {
		customer int64
		meter    int32
	}
	last := make(map[counter]int64)
	for i := range all {
		t := &all[i]
		// A charge that waited for a row may have begun before the charge that locked the row. The events follow
		// the order of the charges of a counter.
		c := counter{t.Customer, t.Meter}
		last[c] = max(last[c], t.Written)
		rows[i] = ofMeter{row{Type: LimitThreshold, At: t.At, Customer: &t.Customer, Data: tellThreshold(t)}, t.Meter, last[c]}
		if t.IsCap() {
			rows[i].Type = CapThreshold
		}
		if t.TestClock != "" {
			rows[i].TestClock = &t.TestClock
		}
	}
	b := new(pgx.Batch)
	if err := postgres.QueueRows(b, insertOfMeters, rows); err != nil {
		return 0, err
	}
	return len(all), postgres.Send(ctx, tx, b)
}

// tellThreshold returns the data of the event, without the meter.
func tellThreshold(t *upkeep.Threshold) client.EventData {
	data := client.EventData{Percent: t.Percent, Used: &t.Used}
	if t.IsCap() {
		data.Units, data.AmountMinor = &t.Units, &t.AmountMinor
		data.PeriodStart, data.PeriodEnd = instant(t.Start), instant(t.Reset)
		return data
	}
	data.Name, data.Limit = t.Limit, &t.Units
	data.WindowStart, data.ResetAt = instant(t.Start), instant(t.Reset)
	if t.Burst > 0 {
		data.Burst = &t.Burst
	}
	return data
}

// instant converts µs to a time. It returns nil for 0.
func instant(us int64) *time.Time {
	if us == 0 {
		return nil
	}
	at := time.UnixMicro(us).UTC()
	return &at
}
