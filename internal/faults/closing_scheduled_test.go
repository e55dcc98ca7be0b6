package faults

import (
	"encoding/json"
	"fmt"
	"net/http"

	"quotad/internal/testkit/pgtest"
)

// changers are how many customers, the last ones, change their plan at the end of each month.
const changers = 20

// planOf is the plan on which a customer is in a month.
func (c *closers) planOf(customer, month int) string {
	if customer >= billedCustomers-changers {
		customer += month
	}
	return []string{"advance", "arrears"}[customer%2]
}

// schedule has each changer go to the other plan when the month ends.
func (c *closers) schedule() {
	c.t.Helper()
	for i := billedCustomers - changers; i < billedCustomers; i++ {
		c.put("/v1/customers/"+billedKey(i)+"/scheduled-change", `{"plan":"`+c.planOf(i, c.month+1)+`"}`)
	}
}

const pricedBy = `
	SELECT coalesce(jsonb_object_agg(key, months), '{}') FROM (
		SELECT c.key, jsonb_object_agg(p.n, q.key) AS months
		FROM periods p JOIN customers c ON c.id = p.customer_id JOIN plans q ON q.id = p.plan_id GROUP BY c.key) x`

// toldChanges has those events, too, that have no number yet.
const toldChanges = `
	SELECT coalesce(jsonb_object_agg(key, times), '{}') FROM (
		SELECT c.key, count(*) AS times FROM (SELECT type, customer FROM events UNION ALL SELECT type, customer FROM outbox) e
		JOIN customers c ON c.id = e.customer WHERE e.type = 'customer.plan_changed' GROUP BY c.key) x`

// compareChanges: each month is priced by the plan that was to count in it, whoever died when it came to
// count. The customer is on that plan, and each change was told once.
func (c *closers) compareChanges() {
	c.t.Helper()
	var plans map[string]map[int]string
	var told map[string]int
	c.settleChanges()
	for query, into := range map[string]any{pricedBy: &plans, toldChanges: &told} {
		if err := json.Unmarshal([]byte(pgtest.Query[string](c.t, c.server.URL(), query)), into); err != nil {
			c.t.Fatal(err)
		}
	}
	wrong := 0
	say := func(format string, args ...any) {
		if wrong++; wrong <= maxShown {
			c.t.Errorf(format, args...)
		}
	}
	for i := range billedCustomers {
		key := billedKey(i)
		for month := range c.month {
			if got, want := plans[key][month], c.planOf(i, month); got != want {
				say("%s: month %d is priced by %q, and not by %q", key, month, got, want)
			}
		}
		want := 0
		if i >= billedCustomers-changers {
			want = c.month
		}
		if told[key] != want {
			say("%s: %d changes of plan were told, and not %d", key, told[key], want)
		}
	}
}

// settleChanges has the last changes written into their customers, which whoever asks for one does, and
// holds the plan that these are on.
func (c *closers) settleChanges() {
	c.t.Helper()
	for i := billedCustomers - changers; i < billedCustomers; i++ {
		path := "/v1/customers/" + billedKey(i)
		c.want(http.MethodPut, path+"/scheduled-change", fmt.Sprintf(`{"plan":%q}`, c.planOf(i, c.month+1)))
		var got struct{ Plan string }
		if err := json.Unmarshal(c.want(http.MethodGet, path, "").raw, &got); err != nil || got.Plan != c.planOf(i, c.month) {
			c.t.Errorf("%s is on %q, and not on %q, %v", path, got.Plan, c.planOf(i, c.month), err)
		}
	}
}
