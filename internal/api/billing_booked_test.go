package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/testkit"
)

// reservedAtTen reserves 100 units at 10:10, and returns the path of the reservation.
func (n *node) reservedAtTen() string {
	n.t.Helper()
	n.setTo("2026-01-16T10:10:00Z")
	r := n.want(201, "POST", "/v1/reservations", `{"customer":"acme","meter":"requests","cost":100,"ttl_ms":7200000}`)
	return "/v1/reservations/" + r.json["id"].(string)
}

// commits commits units of a reservation of 100 at an instant.
func (n *node) commits(cost int, at string) {
	n.t.Helper()
	held := n.reservedAtTen()
	n.setTo(at)
	n.want(200, "POST", held+"/commit", fmt.Sprintf(`{"cost":%d}`, cost))
}

// gaveBack uses 100 units at 10:10, and gives 60 back at 10:20. more is further members of the refund.
func (n *node) gaveBack(more string) {
	n.t.Helper()
	n.setTo("2026-01-16T10:10:00Z")
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":100,"id":"h"}`)
	n.setTo("2026-01-16T10:20:00Z")
	n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","cost":60,"id":"r"`+more+`}`)
}

// A clock is set back, and a period cut. The part that ends there has all that was booked before, and ends
// after that, whatever booked it.
func TestCutsComeAfterWhatWasBooked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		do    func(n *node)
		units float64
	}{
		{"a commit of all", func(n *node) { n.commits(100, "2026-01-16T10:20:00Z") }, 100},
		{"a commit of less", func(n *node) { n.commits(40, "2026-01-16T10:20:00Z") }, 40},
		{"a commit of more", func(n *node) { n.commits(101, "2026-01-16T10:20:00Z") }, 101},
		{"a refund of a hit", func(n *node) { n.gaveBack(`,"hit":"h"`) }, 40},
		{"a refund", func(n *node) { n.gaveBack("") }, 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := cutNode(t)
			c.do(n)
			n.setTo("2026-01-16T10:15:00Z")
			n.onto(200, "dear", `,"change":"now"`)
			n.use(200, 3) // at 10:20, where the row stands
			draft := n.billed("2026-01-16T10:20:30Z", "draft")
			if got := draft["lines"].([]any)[1].(map[string]any)["quantity"]; draft["period_end"] != "2026-01-16T10:20:00.000001Z" || got != c.units+3 {
				t.Errorf("the part before ends at %v with %v units", draft["period_end"], got)
			}
			n.agreed("after the cut")
		})
	}
}

// What is booked or adjusted at the very instant of an end is billed: the period ends just after it.
func TestEndsComeAfterWhatWasBooked(t *testing.T) {
	t.Parallel()
	const at = "2026-01-16T11:00:00Z"
	commit := func(n *node) { n.commits(100, at) }
	adjust := func(n *node) {
		n.setTo(at)
		n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":100,"reason":"r","id":"a"}`)
	}
	hit := func(n *node) {
		n.setTo(at)
		n.use(200, 100)
	}
	archive := func(n *node) { n.want(204, "DELETE", "/v1/customers/acme", "") }
	end := func(n *node) {
		if got := n.bill(200, "acme", `{"ends_at":"`+at+`"}`).json["ends_at"]; got != "2026-01-16T11:00:00.000001Z" {
			n.t.Error("the account ends at", got)
		}
	}
	for name, c := range map[string]struct {
		do, end func(n *node)
		ends    string
	}{
		"a commit, archived":        {commit, archive, "2026-01-16T11:00:00.000001Z"},
		"an adjustment, archived":   {adjust, archive, "2026-01-16T11:00:00.000001Z"},
		"a hit, archived":           {hit, archive, "2026-01-16T11:00:00.000001Z"},
		"a commit, ended":           {commit, end, "2026-01-16T11:00:00.000001Z"},
		"an adjustment, ended":      {adjust, end, "2026-01-16T11:00:00.000001Z"},
		"a hit, ended":              {hit, end, "2026-01-16T11:00:00.000001Z"},
		"a hit, ended twice":        {hit, func(n *node) { end(n); end(n) }, "2026-01-16T11:00:00.000001Z"},
		"a hit, to end later":       {hit, func(n *node) { n.bill(200, "acme", `{"ends_at":"2026-01-16T11:30:00Z"}`) }, "2026-01-16T11:30:00Z"},
		"an adjustment set back to": {adjust, func(n *node) { n.setTo("2026-01-16T10:30:00Z"); archive(n) }, "2026-01-16T11:00:00.000001Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := cutNode(t)
			c.do(n)
			c.end(n)
			draft := n.billed("2026-01-16T11:30:30Z", "draft")
			if got := draft["lines"].([]any)[1].(map[string]any)["quantity"]; draft["period_end"] != c.ends || got != 100.0 {
				t.Errorf("the last period ends at %v with %v units", draft["period_end"], got)
			}
			n.agreed("after the end")
		})
	}
}

// So it is within an hour, too.
func TestEndsComeAfterWhatWasBookedWithinAnHour(t *testing.T) {
	t.Parallel()
	n := cutNode(t)
	n.setTo("2026-01-16T11:05:00Z")
	n.use(200, 7)
	n.setTo("2026-01-16T11:20:00Z")
	n.use(200, 100)
	for range 2 {
		if got := n.bill(200, "acme", `{"ends_at":"2026-01-16T11:20:00Z"}`).json["ends_at"]; got != "2026-01-16T11:20:00.000001Z" {
			t.Error("the account ends at", got)
		}
	}
	n.setTo("2026-01-16T11:20:10.000001Z")
	n.use(403, 1)
	draft := n.billed("2026-01-16T11:30:30Z", "draft")
	if got := draft["lines"].([]any)[1].(map[string]any)["quantity"]; draft["period_end"] != "2026-01-16T11:20:00.000001Z" || got != 107.0 {
		t.Errorf("the last period ends at %v with %v units", draft["period_end"], got)
	}
	n.agreed("after the end")
}

// An end where nothing was booked is where it was written.
func TestAnEndOfNothingStays(t *testing.T) {
	t.Parallel()
	n := cutNode(t)
	n.setTo("2026-01-16T10:30:00Z")
	n.use(200, 7)
	n.setTo("2026-01-16T11:00:00Z")
	if got := n.bill(200, "acme", `{"ends_at":"2026-01-16T11:00:00Z"}`).json["ends_at"]; got != "2026-01-16T11:00:00Z" {
		t.Error(got)
	}
	n.use(403, 1)
}

// booking is units that were booked at an instant, µs.
type booking struct{ at, units int64 }

// insist sends a request until no change of plan overtakes it: then it is 503, and nothing was charged.
func (n *node) insist(path, body string) (r reply) {
	for r.status = http.StatusServiceUnavailable; r.status == http.StatusServiceUnavailable; {
		r = n.do("POST", path, body)
	}
	return r
}

// commitUntil reserves and commits until stopped, and returns what was booked. A commit is never of more than was
// reserved.
func (n *node) commitUntil(stop <-chan struct{}) (all []booking, err error) {
	for i := int64(0); ; i++ {
		select {
		case <-stop:
			return all, nil
		default:
		}
		r := n.insist("/v1/reservations", `{"customer":"acme","meter":"requests","cost":9,"ttl_ms":60000}`)
		if r.status != 201 {
			return all, fmt.Errorf("reserve: %s", r.text)
		}
		units := 1 + i%9
		if r = n.insist("/v1/reservations/"+r.json["id"].(string)+"/commit", fmt.Sprintf(`{"cost":%d}`, units)); r.status != 200 {
			return all, fmt.Errorf("commit: %s", r.text)
		}
		at, err := time.Parse(time.RFC3339, r.json["at"].(string))
		if err != nil {
			return all, err
		}
		all = append(all, booking{at.UnixMicro(), units})
	}
}

// Senders reserve and commit in real time while the period is cut again and again. Each unit is of the part
// that holds the instant of its commit.
func TestCutsBesideCommits(t *testing.T) {
	t.Parallel()
	n, ctx := billedNode(t), testkit.Context(t)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"C","plan":"pro"}`)
	const senders, cuts = 4, 40
	stop, sent := make(chan struct{}), make(chan []booking, senders)
	for range senders {
		go func() {
			all, err := n.commitUntil(stop)
			if err != nil {
				t.Error(err)
			}
			sent <- all
		}()
	}
	anchor := n.want(200, "GET", "/v1/customers/acme", "").json["billing_anchor"].(string)
	for i := range cuts {
		tag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
		n.want(200, "PUT", "/v1/customers/acme", `{"name":"C","plan":"`+[]string{"max", "pro"}[i%2]+`","billing_anchor":"`+anchor+`","change":"now"}`,
			"If-Match", tag)
	}
	close(stop)
	rows, _ := n.store.Pool().Query(ctx, `SELECT from_at FROM customer_terms ORDER BY from_at`)
	starts, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	check(t, err)
	if len(starts) != cuts+1 {
		t.Fatalf("%d cuts, want %d", len(starts)-1, cuts)
	}
	partOf := func(at int64) int64 { // its start
		i, there := slices.BinarySearch(starts, at)
		if !there {
			i--
		}
		return starts[i]
	}
	want, got := make(map[int64]int64), make(map[int64]int64)
	for range senders {
		for _, b := range <-sent {
			want[partOf(b.at)] += b.units
		}
	}
	rows, _ = n.store.Pool().Query(ctx, `SELECT hour, admitted FROM usage UNION ALL SELECT hour, units FROM counters WHERE attribute = '' AND units > 0`)
	booked, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Hour, Units int64 }])
	check(t, err)
	for _, b := range booked {
		got[partOf(b.Hour)] += b.Units
	}
	maps.DeleteFunc(got, func(_, units int64) bool { return units == 0 })
	if !maps.Equal(got, want) {
		for _, at := range starts {
			if got[at] != want[at] {
				t.Errorf("the part that begins at %d has %d units, want %d", at, got[at], want[at])
			}
		}
	}
	n.agreed("after the cuts")
}
