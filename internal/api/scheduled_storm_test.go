package api

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"quotad/internal/testkit/pgtest"
)

// Four callers schedule and drop changes on two nodes while hits come in and a closed period waits to be
// billed. One state is left: the customer, its quota on both nodes, the upcoming invoice and the
// database agree on it.
func TestScheduledStorm(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	n := scheduledNode(t, url)
	nodes := []*node{n, newNodeOn(t, url)}
	n.joins("small")
	n.setTo("2026-02-10T00:00:00Z") // January is over; nobody has billed it
	var callers sync.WaitGroup
	for caller := range 4 {
		callers.Go(func() {
			of := nodes[caller%2]
			for i := range 15 {
				want, got := "200 201 ", reply{}
				switch (i + caller) % 4 {
				case 0:
					want, got = "204 404 ", of.do("DELETE", ofScheduled, "")
				case 1:
					got = of.do("PUT", ofScheduled, `{"plan":"weekly"}`)
				case 2:
					got = of.do("PUT", ofScheduled, `{"plan":"large"}`)
				default:
					want, got = "200 429 ", of.do("POST", "/v1/hits", `{"customer":"acme","meter":"calls"}`)
				}
				if !strings.Contains(want, fmt.Sprint(got.status, " ")) {
					t.Errorf("%d %s, want %s", got.status, got.text, want)
				}
			}
		})
	}
	callers.Wait()
	for _, of := range nodes {
		check(t, of.server.Catalog.CatchUp(t.Context(), max(n.server.Catalog.Applied(), nodes[1].server.Catalog.Applied())))
	}
	waits, next, got := "", "1000", n.do("GET", ofScheduled, "")
	if rows := pgtest.Query[int](t, n.database, `SELECT count(*) FROM customer_terms WHERE waits`); rows != map[int]int{200: 1, 404: 0}[got.status] {
		t.Errorf("%d rows, %s", rows, got.text)
	}
	if got.status == 200 {
		waits = fmt.Sprintf("%v %v %v", got.json["plan"], got.json["plan_version"], got.json["at"])
		next = map[string]string{"large": "5000", "weekly": "400"}[got.json["plan"].(string)]
	}
	for _, of := range nodes {
		of.on("small", waits)
		if up := of.want(200, "GET", "/v1/customers/acme/invoices/upcoming", ""); !strings.Contains(up.text, `"kind":"base","meter":null`) ||
			!strings.Contains(up.text, `"amount_minor":`+next) {
			t.Errorf("waits %q, but the coming base of %s is not in %s", waits, next, up.text)
		}
	}
	n.settled("2026-04-10T00:00:00Z")
	if got := n.want(200, "GET", "/v1/reconcile", ""); got.json["ok"] != true {
		t.Error(got.text)
	}
}
