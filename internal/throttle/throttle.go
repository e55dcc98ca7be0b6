// Package throttle limits how often an address may do something, by the token bucket that
// customers have. It owns what a node remembers of addresses, which is bounded and in memory only.
//
// It must never know what is limited, and never read a clock: the clock is handed in.
package throttle

import (
	"fmt"
	"net/netip"
	"time"

	"quotad/internal/cache"
	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

// MaxAddresses bounds the addresses that are remembered. The one that was quiet for longest goes.
const MaxAddresses = 10_000

// Throttle has a bucket for each address. It is safe for concurrent use.
type Throttle struct {
	target *model.Target
	wall   func() time.Time
	began  time.Time // instants are counted from here, so that no step of the clock matters
	rows   *cache.Cache[netip.Prefix, model.Row]
}

// New lets an address do something perMinute times a minute, and as often at once. perMinute is at
// least 1; New panics below that. wall is the node's own clock.
func New(perMinute int, wall func() time.Time) *Throttle {
	limit, bad := model.Compile(model.Spec{Name: "address", Algorithm: "token_bucket", Limit: int64(perMinute), Window: "1m"})
	rows, err := cache.New[netip.Prefix, model.Row](MaxAddresses)
	if len(bad) > 0 || err != nil || perMinute < 1 {
		panic(fmt.Sprintf("throttle: %d times a minute cannot be", perMinute))
	}
	return &Throttle{
		target: model.NewTarget(0, 0, 0, []*model.Limit{limit}, calendar.Periods{}, nil),
		wall:   wall, began: wall(), rows: rows,
	}
}

func (t *Throttle) now() int64 { return t.wall().Sub(t.began).Microseconds() }

// Take counts one for an address. wait is 0 if that was admitted. Else nothing was counted, and
// wait is how long it takes until one is admitted again.
func (t *Throttle) Take(from netip.Prefix) (wait time.Duration) {
	now := t.now()
	t.rows.AddIf(from, now, func(row model.Row, _ bool) (model.Row, int64, bool) {
		rows := []model.Row{row}
		d := model.Judge(t.target, rows, now, 1)
		if !d.Allowed {
			wait = time.Duration(d.RetryAfter()) * time.Microsecond
			return row, 0, false
		}
		d.ChargeTo(rows)
		d = d.Charged(rows)
		return rows[0], d.View(0).ResetAt, true // kept until the bucket is full again
	})
	return wait
}

// GiveBack undoes a Take that was admitted.
func (t *Throttle) GiveBack(from netip.Prefix) {
	t.rows.AddIf(from, t.now(), func(row model.Row, known bool) (model.Row, int64, bool) {
		if !known {
			return row, 0, false // its bucket is full
		}
		t.target.GiveBack("", &row, []int64{t.target.Identity(0, row.At)}, model.Present, 1)
		d := model.Judge(t.target, []model.Row{row}, row.At, 0)
		return row, d.View(0).ResetAt, true
	})
}

// Address is whom a request counts for, by its http.Request's RemoteAddr: an IPv4 address, or the
// /64 of an IPv6 one, which a single client can have all of. Connections without an address, as
// those of Unix sockets, count as one.
func Address(remote string) netip.Prefix {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	address, bits := peer.Addr().Unmap().WithZone(""), 32
	if address.Is6() {
		bits = 64
	}
	prefix, _ := address.Prefix(bits) // an error is for other numbers of bits
	return prefix
}
