package events

import (
	"strings"
	"testing"

	"quotad/client"
)

// reach writes a threshold of the customer 7, as a charge does whose transaction began at the database's
// time less so many µs. version: of the counter, as the charge left it.
func reach(t testing.TB, r *reader, meter, version, percent int, earlier int64) {
	t.Helper()
	exec(t, r.pool, `
		INSERT INTO thresholds (shard, customer, meter, at, version, used, units, burst, amount_minor, starts, resets, written_at, percent, name, clock)
		VALUES (0, 7, $1, 1, $2, 1, 1, 0, 0, 0, 0, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $4, $3, 'l', 'clock')`, meter, version, percent, earlier)
}

// The feed shows what charges have reached and all other events in the order in which they were written, also if
// one pass gives ids to all of them, and if there is more of a kind than a pass takes.
func TestEventsAreInTheOrderOfWriting(t *testing.T) {
	t.Parallel()
	pool := poolOf(t)
	n, r := patient(pool), &reader{t: t, pool: pool}
	exec(t, pool, `INSERT INTO meters (id, key, unit, change) OVERRIDING SYSTEM VALUE VALUES (1, 'a', 'u', 1), (2, 'b', 'u', 1)`)
	other := func(name string) Event {
		return Event{Type: InvoiceFinalized, At: 1, Customer: 7, Data: client.EventData{Number: name}}
	}
	late := begin(t, pool, other("late"))
	reach(t, r, 1, 1, 50, 0)
	commit(t, begin(t, pool, other("first")))
	reach(t, r, 1, 2, 80, 0)
	reach(t, r, 1, 3, 100, 5_000_000) // it had to wait for the row
	reach(t, r, 2, 1, 90, 0)
	commit(t, begin(t, pool, other("second")), late)
	if err := n.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	reach(t, r, 2, 2, 100, 0)
	commit(t, begin(t, pool, other("third")))
	const many = numberRows + 3
	exec(t, pool, `
		INSERT INTO thresholds (shard, customer, meter, at, version, used, units, burst, amount_minor, starts, resets, written_at, percent, name, clock)
		SELECT 0, 6, 1, i, i, 1, 1, 0, 0, 0, 0, 1, 1, 'l', '' FROM generate_series(1, $1::int) i`, many)
	if err := n.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The clock is set back: what was written before does not wait for it.
	commit(t, begin(t, pool, other("stepped")))
	exec(t, pool, `UPDATE outbox SET written_at = written_at + 3600000000`)
	if err := n.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.read()
	var got []string
	for _, e := range r.all {
		if text := string(e.Data); strings.Contains(text, `"percent": 1}`) {
			continue // of the many
		} else if _, says, found := strings.Cut(text, `"number": "`); found {
			got = append(got, strings.TrimSuffix(says, `"}`))
		} else {
			_, meter, _ := strings.Cut(text, `"meter": "`)
			_, percent, _ := strings.Cut(text, `"percent": `)
			got = append(got, meter[:1]+percent[:strings.IndexAny(percent, ",}")])
		}
	}
	if got := strings.Join(got, " "); got != "late a50 first a80 a100 b90 second b100 third stepped" {
		t.Errorf("the feed shows %s", got)
	}
	if len(r.all) != 10+many {
		t.Errorf("%d events are shown", len(r.all))
	}
}
