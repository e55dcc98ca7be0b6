package api

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/testkit"
)

// bookedNode is a node with a quarter of real billing: bases in arrears and in advance, prices of
// each model, taxes of both kinds, credits, charges, adjustments, refunds, corrections of which one
// is of 0, a change at once, a credit note, a void invoice and its reissue, an archived customer.
func bookedNode(t *testing.T) *node {
	n := newNode(t)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-01T00:00:00Z"}`)
	for _, meter := range []string{"requests", "tokens", "mails"} {
		n.want(201, "PUT", "/v1/meters/"+meter, `{"unit":"unit"}`)
	}
	const lines = `{"meter":"requests","model":"per_unit","unit_price":"0.01","included":100},
		{"meter":"tokens","model":"graduated","tiers":[{"up_to":1000,"unit_price":"0.002"},{"up_to":null,"unit_price":"0.001","flat_price":"1"}]},
		{"meter":"mails","model":"package","package_size":10,"package_price":"0.5","minimum_minor":25}`
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":2000,"prices":[`+lines+`]}`)
	n.want(201, "PUT", "/v1/plans/max",
		`{"name":"Max","currency":"USD","interval":"month","base_price_minor":3100,"base_in":"advance","minimum_minor":5000,"prices":[`+lines+`]}`)
	for key, plan := range map[string]string{"acme": "pro", "beta": "max", "gone": "pro", "ahead": "max"} {
		n.want(201, "PUT", "/v1/customers/"+key, `{"name":"C","plan":"`+plan+`","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	}
	n.bill(200, "acme", `{"taxes":[{"name":"VAT","percent":"19","inclusive":false},{"name":"City","percent":"0.7","inclusive":false}]}`)
	n.bill(200, "beta", `{"taxes":[{"name":"VAT","percent":"7.7","inclusive":true}]}`)
	n.want(201, "POST", "/v1/customers/acme/credits", `{"amount_minor":1000,"currency":"USD","id":"welcome"}`)
	n.want(201, "POST", "/v1/customers/acme/credits", `{"amount_minor":700,"currency":"USD","id":"brief","expires_at":"2026-01-20T00:00:00Z"}`)
	n.settled("2026-01-10T12:00:00Z")
	hit := func(customer, meter string, cost int, id string) {
		n.want(200, "POST", "/v1/hits", fmt.Sprintf(`{"customer":%q,"meter":%q,"cost":%d,"id":%q}`, customer, meter, cost, id))
	}
	adjust := func(customer, meter string, cost int, at, id string) {
		n.want(201, "POST", "/v1/customers/"+customer+"/adjustments", fmt.Sprintf(`{"meter":%q,"cost":%d,"reason":"r","at":%q,"id":%q}`, meter, cost, at, id))
	}
	for _, customer := range []string{"acme", "beta", "gone"} {
		hit(customer, "requests", 250, "a")
		hit(customer, "tokens", 4321, "b")
	}
	hit("beta", "mails", 12, "c")
	adjust("acme", "requests", 7, "2026-01-05T00:00:00Z", "open")
	n.want(201, "POST", "/v1/customers/acme/charges", `{"description":"Setup","amount_minor":500,"currency":"USD","id":"setup"}`)
	n.settled("2026-01-15T06:00:00Z")
	n.want(200, "PUT", "/v1/customers/beta", `{"name":"C","plan":"pro","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock","change":"now"}`,
		"If-Match", n.want(200, "GET", "/v1/customers/beta", "").header.Get("ETag"))
	hit("beta", "requests", 120, "d")
	n.agreed("after a change at once")
	n.settled("2026-02-01T00:30:00Z")
	adjust("acme", "requests", 3, "2026-01-31T23:00:00Z", "draft")
	n.agreed("while there are drafts")
	n.settled("2026-02-02T00:00:00Z")
	adjust("acme", "requests", -30, "2026-01-05T00:00:00Z", "late")
	adjust("beta", "mails", -1, "2026-01-10T12:00:00Z", "nothing") // 11 are as many packages
	adjust("gone", "mails", 3, "2026-01-10T12:00:00Z", "minimum")  // a correction of 25, the minimum
	n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"tokens","cost":21,"hit":"b","id":"r"}`)
	hit("acme", "requests", 50, "e")
	hit("gone", "requests", 5, "e")
	n.agreed("with corrections to come")
	n.want(204, "DELETE", "/v1/customers/gone", "")
	n.settled("2026-03-01T00:30:00Z")
	n.agreed("with corrections on drafts")
	n.settled("2026-03-03T00:00:00Z")
	n.agreed("after corrections")
	return n
}

// invoicesOf are the ids of a customer's final invoices, in the order of their numbers.
func (n *node) invoicesOf(customer string) (ids []string) {
	n.t.Helper()
	rows, err := n.store.Pool().Query(testkit.Context(n.t), `SELECT i.id::text FROM invoices i JOIN customers c ON c.id = i.customer_id
		WHERE c.key = $1 AND i.number IS NOT NULL ORDER BY i.number`, customer)
	check(n.t, err)
	ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
	check(n.t, err)
	return ids
}
