package api

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"quotad/internal/testkit"
)

// Reconcile beside hits, adjustments, refunds and the closing of months gives no false alarm.
func TestReconcileBesideAll(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-01T00:00:00Z"}`)
	for _, meter := range []string{"requests", "tokens"} {
		n.want(201, "PUT", "/v1/meters/"+meter, `{"unit":"unit"}`)
	}
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":2000,"base_in":"advance","prices":[
		{"meter":"requests","model":"per_unit","unit_price":"0.01","included":100},{"meter":"tokens","model":"package","package_size":100,"package_price":"0.5"}]}`)
	const customers = 12
	for c := range customers {
		n.want(201, "PUT", fmt.Sprintf("/v1/customers/c%d", c), `{"name":"C","plan":"pro","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	}
	n.want(201, "PUT", "/v1/customers/real", `{"name":"C","plan":"pro"}`)
	var done atomic.Bool
	var tried, hits, adjusted atomic.Int64
	var all sync.WaitGroup
	for w := range 3 {
		all.Go(func() {
			for i := 0; !done.Load(); i++ {
				tried.Add(1)
				customer := fmt.Sprintf("c%d", (i*7+w)%customers)
				id := fmt.Sprintf("%d-%d", w, i)
				if got := n.do("POST", "/v1/hits", fmt.Sprintf(`{"customer":%q,"meter":"requests","cost":%d,"id":%q}`, customer, i%50, id)); got.status == 200 {
					hits.Add(1)
				}
				n.do("POST", "/v1/hits", fmt.Sprintf(`{"customer":%q,"meter":"tokens","cost":%d}`, customer, i%9))
				n.do("POST", "/v1/hits", `{"customer":"real","meter":"tokens"}`)
				if i%3 == 0 { // of this month, or of one that is over
					at := fmt.Sprintf("2026-%02d-02T03:04:05Z", 1+i%5)
					if got := n.do("POST", "/v1/customers/"+customer+"/adjustments",
						fmt.Sprintf(`{"meter":"requests","cost":%d,"reason":"r","id":%q,"at":%q}`, 1+i%40, id, at)); got.status == 201 {
						adjusted.Add(1)
					}
				}
				if i%5 == 0 {
					n.do("POST", "/v1/refunds", fmt.Sprintf(`{"customer":%q,"meter":"requests","cost":1,"hit":%q,"id":%q}`, customer, id, id))
				}
			}
		})
	}
	var runs atomic.Int64
	all.Go(func() {
		for !done.Load() {
			n.agreed("beside hits and closings")
			runs.Add(1)
		}
	})
	for _, now := range []string{
		"2026-01-20T00:00:00Z", "2026-02-01T00:00:10Z", "2026-02-01T01:00:10Z", "2026-02-15T00:00:00Z", "2026-03-01T00:30:00Z", "2026-03-20T00:00:00Z",
		"2026-05-02T00:00:00Z", "2026-06-01T00:00:10Z", "2026-06-03T00:00:00Z",
	} {
		n.setTo(now)
		before := tried.Load()
		testkit.Eventually(t, "hits by this clock", func() bool { return tried.Load() >= before+20 })
	}
	testkit.Eventually(t, "runs beside hits and adjustments", func() bool { return runs.Load() >= 2 && hits.Load() >= 20 && adjusted.Load() >= 3 })
	done.Store(true)
	all.Wait()
	n.settled("2026-08-01T02:00:00Z")
	n.agreed("at last")
	t.Logf("%d runs beside %d hits and %d adjustments", runs.Load(), hits.Load(), adjusted.Load())
}
