// Package throttle limits how often an address may perform an action, with the same token bucket that limits
// customers. It owns a node's memory of addresses, which is bounded and is not stored.
//
// The package must never depend on the limited action, and must never read a clock itself: the clock is a
// parameter.
package throttle

import (
	"fmt"
	"net/netip"
	"time"

	"quotad/internal/cache"
	"quotad/internal/calendar"
	"quotad/internal/quota/model"
)

// MaxAddresses is the maximum number of addresses in memory. The least recently active address is dropped first.
const MaxAddresses = 10_000

// Throttle contains a token bucket for each address. It is safe for concurrent use.
type Throttle struct {
	target *model.Target
	wall   func() time.Time
	began  time.Time // instants are counted from began, so steps of the clock have no effect
	rows   *cache.Cache[netip.Prefix, model.Row]
}

// New returns a Throttle that admits perMinute actions a minute for each address, and the same number at once.
// It panics if perMinute is below 1. wall is the node's own clock.
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

// Take counts one action of an address. wait is 0 if the action is admitted. Otherwise Take counts nothing, and
// wait is the time until an action is admitted again.
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
		return rows[0], d.View(0).ResetAt, true // stays in memory until the bucket is full again
	})
	return wait
}

// GiveBack reverts a Take that was admitted.
func (t *Throttle) GiveBack(from netip.Prefix) {
	t.rows.AddIf(from, t.now(), func(row model.Row, known bool) (model.Row, int64, bool) {
		if !known {
			return row, 0, false // the bucket is already full
		}
		t.target.GiveBack("", &row, []int64{t.target.Identity(0, row.At)}, model.Present, 1)
		d := model.Judge(t.target, []model.Row{row}, row.At, 0)
		return row, d.View(0).ResetAt, true
	})
}

// Address returns the address for which a request counts, from the RemoteAddr of its http.Request. The address
// is an IPv4 address, or the /64 prefix of an IPv6 address, because a single client can own a whole /64. All
// connections without an address, such as Unix sockets, share one bucket.
func Address(remote string) netip.Prefix {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	address, bits := peer.Addr().Unmap().WithZone(""), 32
	if address.Is6() {
		bits = 64
	}
	prefix, _ := address.Prefix(bits) // an error is impossible with these numbers of bits
	return prefix
}
