package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// quotaOf is the request for a customer's quota, with the buckets of a region.
func quotaOf(customer int, region string) request {
	path := "/v1/customers/" + keyOf(customer) + "/quota"
	if region != "" {
		path += "?attr.region=" + region
	}
	return request{http.MethodGet, path, "", ""}
}

// look reads quotas of anybody, while all is in motion, until ctx ends. One answer is one
// snapshot, so what its limits and meters say must fit together.
func (r *run) look(ctx context.Context, t testing.TB) {
	random := rand.New(rand.NewPCG(r.seed, 0x100c))
	for ctx.Err() == nil {
		customer := random.IntN(numCustomers)
		a, err := r.cluster.send(quotaOf(customer, regions[random.IntN(len(regions))]), random.IntN(len(r.cluster.nodes)))
		if err == nil && a.status == http.StatusOK {
			r.looks.Add(1)
			if wrong := snapshot(customer, &a.content); len(wrong) > 0 {
				t.Errorf("while running: %s: %s", keyOf(customer), strings.Join(wrong, "; "))
				return // once is enough
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// snapshot says what does not fit together in one answer about a customer.
func snapshot(customer int, c *content) (wrong []string) {
	views := make(map[string]limitView)
	for _, v := range c.Limits {
		views[v.Name] = v
	}
	used := make(map[string]int64)
	for _, m := range c.Meters {
		used[m.Meter] = m.Used
	}
	for i := range limits {
		l := &limits[i]
		v, there := views[l.name]
		bad := func(format string, args ...any) {
			wrong = append(wrong, l.name+": "+fmt.Sprintf(format, args...))
		}
		switch net := v.Used - v.Reserved; {
		case !there:
			bad("is missing")
		case v.Used < 0 || v.Used > l.of(customer) || v.Reserved < 0 || v.Reserved > v.Used:
			bad("%d used, %d of them reserved, of %d", v.Used, v.Reserved, l.of(customer))
		case l.algorithm == "concurrency" && v.Used != v.Reserved:
			bad("%d in flight, %d reserved", v.Used, v.Reserved)
		case l.algorithm != "concurrency" && !l.per && net != used[l.meter]:
			bad("%d used and not reserved, %d booked as usage", net, used[l.meter])
		}
	}
	return wrong
}

// differences says where what quotad shows is not what the ledger says, to the unit:
// used and reserved of every limit, each meter's usage of the period, and that of the
// month by its hours. stands: no time has passed, so all limits can be compared.
func (r *run) differences(t testing.TB, stands bool) (all []string) {
	t.Helper()
	wrong := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for customer := range numCustomers {
		for _, region := range regions {
			c := r.read(t, quotaOf(customer, region))
			views := make(map[string]limitView)
			for _, v := range c.Limits {
				views[v.Name] = v
			}
			for i := range limits {
				l := &limits[i]
				should := account{customer: customer, meter: l.meter}
				if l.per {
					should.region, should.one = region, true
				}
				want, v := r.ledger.should(should), views[l.name]
				if (stands || l.outlasts()) && v.Used != l.used(want) || v.Reserved != want.held {
					wrong("%s, region %q: %s: %d used, %d reserved, not %d and %d", keyOf(customer), region, l.name, v.Used, v.Reserved, l.used(want), want.held)
				}
			}
			for _, m := range c.Meters {
				if want := r.ledger.should(account{customer: customer, meter: m.Meter}).net; m.Used != want {
					wrong("%s: %s: %d used in the period, not %d", keyOf(customer), m.Meter, m.Used, want)
				}
			}
		}
		for _, m := range meters {
			query := url.Values{"meter": {m}, "from": {monthStart}, "to": {monthEnd}, "granularity": {"hour"}}
			var booked int64
			for _, p := range r.read(t, request{http.MethodGet, "/v1/customers/" + keyOf(customer) + "/usage?" + query.Encode(), "", ""}).Points {
				booked += p.Admitted
			}
			if want := r.ledger.should(account{customer: customer, meter: m}).net; booked != want {
				wrong("%s: %s: %d units of usage, not %d", keyOf(customer), m, booked, want)
			}
		}
	}
	return all
}

// read reads from the first node, without faults.
func (r *run) read(t testing.TB, what request) *content {
	t.Helper()
	var a answer
	testkit.Eventually(t, what.path+" is answered", func() (ok bool) {
		var err error
		a, err = r.cluster.send(what, 0)
		return err == nil && a.status == http.StatusOK
	})
	return &a.content
}

// maxShown bounds how many differences are listed.
const maxShown = 20

func show(t testing.TB, wrong []string) {
	t.Helper()
	for i, w := range wrong {
		if i == maxShown {
			t.Errorf("and %d more", len(wrong)-maxShown)
			return
		}
		t.Error(w)
	}
}
