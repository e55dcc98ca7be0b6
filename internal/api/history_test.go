package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// historyLimits are of all kinds of counters that hits charge.
const historyLimits = `{"name":"hourly","meter":"requests","algorithm":"fixed_window","limit":100000,"window":"1h"},
	{"name":"regional","meter":"calls","algorithm":"fixed_window","limit":100000,"window":"1h","per":"region"},
	{"name":"open","meter":"jobs","algorithm":"concurrency","limit":1000,"ttl":"1h"}`

// unnumbered counts counters that were judged under no change that there is.
const unnumbered = `SELECT count(*) FROM counters WHERE change > (SELECT number FROM change_number)`

// historyCharges charge a customer's counters in all ways, each once.
func (n *node) historyCharges(customer string, run int) {
	n.t.Helper()
	hit := func(meter, more string) string {
		return fmt.Sprintf(`{"customer":%q,"meter":%q,"cost":1%s}`, customer, meter, more)
	}
	eu := `,"attributes":{"region":"eu"}`
	id := fmt.Sprintf(`,"id":"%s-%d"`, customer, run)
	n.want(200, "POST", "/v1/hits", hit("requests", ""))
	n.want(200, "POST", "/v1/hits", hit("requests", id))
	n.want(200, "POST", "/v1/hits", hit("calls", eu))
	batch := n.want(200, "POST", "/v1/hits/batch", `{"atomic":true,"hits":[`+hit("requests", "")+`,`+hit("calls", eu)+`]}`)
	if strings.Contains(batch.text, `"error"`) || !strings.Contains(batch.text, `"allowed":true`) {
		n.t.Errorf("a batch: %s", batch.text)
	}
	held := n.want(201, "POST", "/v1/reservations", fmt.Sprintf(`{"customer":%q,"meter":"jobs","cost":2,"ttl_ms":60000%s}`, customer, id))
	n.want(200, "POST", "/v1/reservations/"+held.json["id"].(string)+"/commit", `{"cost":1}`)
	n.want(200, "POST", "/v1/refunds", fmt.Sprintf(`{"customer":%q,"meter":"requests","cost":1,"id":"back-%s-%d"}`, customer, customer, run))
	n.want(200, "GET", "/v1/customers/"+customer+"/quota?attr.region=eu", "")
}

// Somebody wrote numbers of changes into counters that there are not. Whatever is done first on such
// a counter, no caller hears of it. So it is when other changes draw the numbers after that.
func TestNumbersOfNoChange(t *testing.T) {
	n := newNode(t)
	for _, meter := range []string{"calls", "jobs"} {
		n.want(201, "PUT", "/v1/meters/"+meter, `{"unit":"unit"}`)
	}
	n.setUp(historyLimits)
	customers := []string{"acme"}
	for i := range 8 {
		customers = append(customers, fmt.Sprintf("c-%d", i))
		n.want(201, "PUT", "/v1/customers/"+customers[i+1], `{"name":"C","plan":"pro","timezone":"UTC"}`)
	}
	all := func(run int) {
		t.Helper()
		for _, customer := range customers {
			n.historyCharges(customer, run)
		}
	}
	all(0)
	for run, c := range []struct {
		write string
		draws int // how many changes come before the next hits
	}{{"change + 7", 0}, {"change + 7", 20}, {"4611686018427387904", 0}} {
		before := n.server.Engine.Stats()
		pgtest.Exec(t, n.database, "UPDATE counters SET change = "+c.write)
		for i := range c.draws {
			n.want(201, "PUT", fmt.Sprintf("/v1/customers/other-%d", i), `{"name":"O","plan":"pro","timezone":"UTC"}`)
		}
		// A look comes first for some, and charges nothing.
		n.want(200, "GET", "/v1/customers/acme/quota?attr.region=eu", "")
		all(run + 1)
		rows := pgtest.Query[int64](t, n.database, "SELECT count(*) FROM counters")
		if left := pgtest.Query[int](t, n.database, unnumbered); left > 0 {
			t.Errorf("%s: %d of %d counters keep their numbers", c.write, left, rows)
		}
		after := n.server.Engine.Stats()
		if got := after.RowsWentBack - before.RowsWentBack; got != rows {
			t.Errorf("%s: %d counters were repaired, of %d", c.write, got, rows)
		}
	}
	// And a change counts as ever.
	n.setLimit("acme", 1)
	if got := n.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":1}`); got.status != 429 {
		t.Errorf("beyond the limit: %s", got.text)
	}
}

// setLimit gives a customer a limit of its own.
func (n *node) setLimit(customer string, units int) {
	n.t.Helper()
	n.want(201, "PUT", "/v1/customers/"+customer+"/overrides/hourly", fmt.Sprintf(`{"limit":%d}`, units))
}

// swapDatabases puts another database in the place of one, as who restores a dump does. What was there
// has the name of old then.
func swapDatabases(t *testing.T, place, other, old string) {
	t.Helper()
	pgtest.Exec(t, pgtest.AdminURL(t), closeDatabase(place)...)
	pgtest.Exec(t, pgtest.AdminURL(t), "ALTER DATABASE "+place+" RENAME TO "+old, "ALTER DATABASE "+other+" RENAME TO "+place,
		"ALTER DATABASE "+place+" ALLOW_CONNECTIONS true")
}

// closeDatabase ends all sessions of a database, and lets no more in.
func closeDatabase(name string) []string {
	return []string{
		"ALTER DATABASE " + name + " ALLOW_CONNECTIONS false",
		"SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE datname = '" + strings.Trim(name, `"`) + "'",
	}
}

// A dump is restored in the place of the database of a node that runs, without the last admin writes.
// No counter is charged as of these, and soon nothing fails any more.
func TestARestoredDump(t *testing.T) {
	n := newNode(t)
	n.setUp(strings.Replace(hourly, `"limit":5`, `"limit":100000`, 1))
	const customers = 20
	hit := func(i int) string { return fmt.Sprintf(`{"customer":"c-%d","meter":"requests","cost":1}`, i%customers) }
	for i := range customers {
		n.want(201, "PUT", fmt.Sprintf("/v1/customers/c-%d", i), `{"name":"C","plan":"pro","timezone":"UTC"}`)
		n.want(200, "POST", "/v1/hits", hit(i))
	}
	at, err := url.Parse(n.database)
	check(t, err)
	place := strings.TrimPrefix(at.Path, "/")
	quoted := func(more string) string { return `"` + place + more + `"` }
	pgtest.Exec(t, pgtest.AdminURL(t), closeDatabase(quoted(""))...)
	pgtest.Exec(t, pgtest.AdminURL(t), "CREATE DATABASE "+quoted("-dump")+" TEMPLATE "+quoted(""), "ALTER DATABASE "+quoted("")+" ALLOW_CONNECTIONS true")
	t.Cleanup(func() { pgtest.Exec(t, pgtest.AdminURL(t), "DROP DATABASE IF EXISTS "+quoted("-old")+" WITH (FORCE)") })
	charged := func(i int) bool {
		got := n.do("POST", "/v1/hits", hit(i))
		return got.status == 200 && !strings.Contains(got.text, `"degraded":true`)
	}
	for i := range customers { // the node has its sessions again
		testkit.Eventually(t, "a hit", func() bool { return charged(i) })
	}
	for i := range customers {
		n.setLimit(fmt.Sprintf("c-%d", i), 7)
		n.want(200, "POST", "/v1/hits", hit(i))
	}
	before := n.server.Engine.Stats()

	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	var swapped, late, sentAfter atomic.Int64
	var settled atomic.Bool
	long := os.Getenv("QUOTAD_TEST_LONG") != ""
	for from := range 4 {
		callers.Go(func() {
			for i := from; ctx.Err() == nil; i++ {
				sent, after := time.Now(), settled.Load()
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url+"/v1/hits", strings.NewReader(hit(i)))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header = http.Header{"Authorization": {"Bearer " + adminSecret}, "Content-Type": {"application/json"}}
				a, err := n.client.Do(r)
				if err != nil {
					return // the end of the test
				}
				_, _ = io.Copy(io.Discard, a.Body)
				_ = a.Body.Close()
				if after {
					sentAfter.Add(1)
				}
				at := swapped.Load()
				if over := long && at > 0 && sent.UnixMicro() > at+2e6; a.StatusCode >= 500 && (after || over) {
					late.Add(1)
				}
			}
		})
	}
	swapDatabases(t, quoted(""), quoted("-dump"), quoted("-old"))
	swapped.Store(time.Now().UnixMicro())
	for i := range customers {
		testkit.Eventually(t, "a hit on what was restored", func() bool { return charged(i) })
	}
	testkit.Eventually(t, "the node has heard of what is there now", func() bool { return n.server.Catalog.Renew(ctx) == nil })
	settled.Store(true)
	testkit.Eventually(t, "many more hits", func() bool {
		return sentAfter.Load() > 200 && (!long || time.Now().UnixMicro() > swapped.Load()+2.5e6)
	})
	cancel()
	callers.Wait()
	if late.Load() > 0 {
		t.Errorf("%d hits failed after the node was served again, or 2 s after the restore", late.Load())
	}
	if left := pgtest.Query[int](t, n.database, unnumbered); left > 0 {
		t.Errorf("%d counters were judged under lost changes", left)
	}
	if after := n.server.Engine.Stats(); after.RowsWentBack != before.RowsWentBack {
		t.Errorf("%d counters had been charged as of lost changes", after.RowsWentBack-before.RowsWentBack)
	}
	quota := n.want(200, "GET", "/v1/customers/c-0/quota", "")
	if !strings.Contains(quota.text, `"limit":100000`) {
		t.Errorf("a lost override counts: %s", quota.text)
	}
}
