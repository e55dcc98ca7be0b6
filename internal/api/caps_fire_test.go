package api

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// capFire is many clients that use a capped meter up on three nodes, in every way at once, while a billing
// period turns.
type capFire struct {
	*node
	nodes         []*node
	turn          time.Time
	stop          atomic.Bool
	calm          sync.RWMutex // who holds it keeps all clients waiting
	next          atomic.Int64
	seed, callers uint64

	mu   sync.Mutex
	used [2]int64 // admitted, adjusted and given back, before the turn and from it on
}

// book notes units that an answer says were booked at its instant.
func (f *capFire) book(got reply, units int64) {
	at, err := time.Parse(time.RFC3339Nano, got.json["at"].(string))
	check(f.t, err)
	period := 0
	if !at.Before(f.turn) {
		period = 1
	}
	f.mu.Lock()
	f.used[period] += units
	f.mu.Unlock()
}

func (f *capFire) total(period int) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used[period]
}

// hit sends a hit in one of the ways, and books what came of it.
func (f *capFire) hit(n *node, cost int64) {
	hit := fmt.Sprintf(`{"customer":"acme","meter":"requests","cost":%d`, cost)
	switch id := f.next.Add(1); id % 5 {
	case 0, 1:
		if got := n.do("POST", "/v1/hits", hit+`}`); got.status == 200 {
			f.book(got, cost)
		}
	case 2:
		got := n.do("POST", "/v1/hits", fmt.Sprintf(`%s,"id":"h%d"}`, hit, id))
		if got.status != 200 {
			return
		}
		f.book(got, cost)
		if id%3 == 0 { // what is given back is the hit's, in the period of the hit
			back := n.want(200, "POST", "/v1/refunds", fmt.Sprintf(`{"customer":"acme","meter":"requests","cost":1,"hit":"h%d","id":"b%d"}`, id, id))
			f.book(got, -int64(back.json["refunded"].(float64)))
		}
	case 3:
		got := n.want(200, "POST", "/v1/hits/batch", `{"atomic":true,"hits":[`+hit+`},`+hit+`}]}`)
		for _, r := range got.json["results"].([]any) {
			if one := r.(map[string]any); one["allowed"] == true {
				f.book(reply{json: one}, cost)
			}
		}
	case 4:
		f.reserve(n, cost, id)
	}
}

// reserve commits most of a reservation, releases it, or lets it expire.
func (f *capFire) reserve(n *node, cost, id int64) {
	got := n.do("POST", "/v1/reservations", fmt.Sprintf(`{"customer":"acme","meter":"requests","cost":%d,"ttl_ms":50}`, cost+1))
	if got.status != 201 {
		return
	}
	one := "/v1/reservations/" + got.json["id"].(string)
	switch id % 3 {
	case 0:
		n.do("DELETE", one, "")
	case 1:
		if got := n.do("POST", one+"/commit", fmt.Sprintf(`{"cost":%d}`, cost)); got.status == 200 {
			f.book(got, cost)
		}
	}
}

// run fires from some clients of each node.
func (f *capFire) run() (wait func()) {
	var clients sync.WaitGroup
	for _, n := range f.nodes {
		for range 3 {
			random := rand.New(rand.NewPCG(f.seed, f.callers))
			f.callers++
			clients.Go(func() {
				for !f.stop.Load() {
					f.calm.RLock()
					f.hit(n, 1+random.Int64N(3))
					f.calm.RUnlock()
				}
			})
		}
	}
	return clients.Wait
}

// fills waits until a period has exactly so many units, and as many after 100 more tries.
func (f *capFire) fills(period int, units int64) {
	f.t.Helper()
	since := f.next.Load()
	testkit.Eventually(f.t, fmt.Sprintf("the cap lets %d units pass in period %d", units, period), func() bool {
		tried, is := f.next.Load(), f.total(period) == units
		if !is {
			since = tried
		}
		return is && (tried-since >= 100 || f.stop.Load())
	})
}

// TestCapsUnderFire: three nodes admit exactly the cap's units, while the cap is raised, credits are
// granted, usage is adjusted and given back, reservations come and go, and a period turns.
func TestCapsUnderFire(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	f := &capFire{seed: testkit.Seed(t), nodes: []*node{newNodeOn(t, url), newNodeOn(t, url), newNodeOn(t, url)}}
	f.node = f.nodes[0]
	f.turn = f.nowOf().Add(time.Hour).UTC().Truncate(time.Second)
	f.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	f.want(201, "PUT", "/v1/plans/priced",
		`{"name":"P","currency":"USD","interval":"day","base_price_minor":0,"prices":[{"meter":"requests","model":"per_unit","unit_price":"1"}]}`)
	f.want(201, "PUT", "/v1/customers/acme", `{"name":"A","plan":"priced","billing_anchor":"`+f.turn.AddDate(0, 0, -3).Format("2006-01-02T15:04:05")+`"}`)
	f.raise("acme", 60)
	for _, n := range f.nodes[1:] {
		check(t, n.server.Catalog.CatchUp(t.Context(), f.server.Catalog.Applied()))
	}
	wait := f.run()
	defer wait()
	defer f.stop.Store(true)
	f.fills(0, 60)
	// Ten units are held over the turn, and count on both of its sides.
	f.calm.Lock() // or others take all
	f.nodes[1].raise("acme", 100)
	check(t, f.server.Catalog.CatchUp(t.Context(), f.nodes[1].server.Catalog.Applied()))
	held := f.do("POST", "/v1/reservations", `{"customer":"acme","meter":"requests","cost":10,"ttl_ms":7200000}`)
	f.calm.Unlock()
	if held.status != 201 {
		t.Fatal(held.text)
	}
	f.fills(0, 90)
	f.calm.Lock() // a hit on its way would be judged an hour later than it was sent
	f.leap(f.turn.Add(-200 * time.Millisecond))
	f.calm.Unlock()
	f.fills(1, 90)
	if got := f.total(0); got != 90 {
		t.Errorf("%d units before the turn, and 10 are held; the cap is 100", got)
	}
	got := f.want(200, "POST", "/v1/reservations/"+held.json["id"].(string)+"/commit", `{"cost":10}`)
	f.book(got, 10)
	f.fills(1, 100)

	f.want(201, "POST", "/v1/customers/acme/credits", `{"amount_minor":5000,"currency":"USD","id":"c"}`)
	adjust := func(n *node, units int64, id string) {
		t.Helper()
		f.mu.Lock()
		f.used[1] += units
		f.mu.Unlock()
		n.want(201, "POST", "/v1/customers/acme/adjustments", fmt.Sprintf(`{"meter":"requests","cost":%d,"reason":"r","id":%q}`, units, id))
	}
	adjust(f.nodes[2], -20, "a1")
	f.fills(1, 100)
	adjust(f.nodes[1], 10, "a2") // past the cap: after the raise, clients might have filled that first
	f.nodes[2].raise("acme", 150)
	f.fills(1, 150)
	adjust(f.nodes[0], -30, "a3")
	f.fills(1, 150)
	f.stop.Store(true)
	wait()
	f.fills(1, 150)
	if got := f.capOf("acme"); got != "150 150 0 0" {
		t.Errorf("at the end: %s", got)
	}
}
