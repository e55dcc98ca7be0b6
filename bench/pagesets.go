package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// timedPages are the pages that are timed. as is the customer whose portal it is; empty: an admin page.
var timedPages = []struct {
	name, as, path string
	aim            float64 // ms
}{
	{"portal: overview, 8 limits", "paged", "/portal", aimOfPage},
	{"portal: usage, 48 hours", "paged", "/portal/usage", aimOfPage},
	{"portal: usage, 30 days", "paged", "/portal/usage?meter=paged-a&range=30d", aimOfPage},
	{"portal: refusals", "paged", "/portal/refusals", aimOfPage},
	{"portal: invoices", "paged", "/portal/invoices", aimOfPage},
	{"portal: plan", "paged", "/portal/plan", aimOfPage},
	{"portal: overview, 100 limits, the most of a plan", "wide", "/portal", aimOfLarge},
	{"portal: plan, 100 limits", "wide", "/portal/plan", aimOfLarge},
	{"admin: overview", "", "/admin", aimOfPage},
	{"admin: customers, of 20,000", "", "/admin/customers", aimOfLarge},
	{"admin: customers by prefix, of 20,000", "", "/admin/customers?search=two-100099", aimOfLarge},
	{"admin: customer", "", "/admin/customers/paged", aimOfPage},
	{"admin: customer's usage", "", "/admin/customers/paged/usage", aimOfPage},
	{"admin: customer's billing", "", "/admin/customers/paged/billing", aimOfPage},
	{"admin: plans, 1,000 limits in all", "", "/admin/plans", aimOfLarge},
	{"admin: plan editor, 100 limits", "", "/admin/plans/wide-0", aimOfLarge},
	{"admin: meters", "", "/admin/meters", aimOfPage},
	{"admin: keys", "", "/admin/keys", aimOfPage},
	{"admin: invoices", "", "/admin/invoices", aimOfPage},
	{"admin: audit", "", "/admin/audit", aimOfPage},
}

// pagedPlan has a limit of each kind, and prices.
const pagedPlan = `{"name":"Paged","currency":"USD","interval":"month","base_price_minor":4900,
	"limits":[
		{"name":"hourly","meter":"paged-a","algorithm":"fixed_window","limit":5000,"window":"1h"},
		{"name":"monthly","meter":"paged-a","algorithm":"fixed_window","limit":16000000,"window":"calendar_month","mode":"soft"},
		{"name":"daily","meter":"paged-b","algorithm":"token_bucket","limit":200,"window":"1d"},
		{"name":"sliding","meter":"paged-b","algorithm":"sliding_window","limit":20000,"window":"15m"},
		{"name":"log","meter":"paged-c","algorithm":"sliding_log","limit":60,"window":"1m"},
		{"name":"seats","meter":"paged-d","algorithm":"allocation","limit":25},
		{"name":"renders","meter":"paged-e","algorithm":"concurrency","limit":5,"ttl":"10m"},
		{"name":"address","meter":"paged-e","algorithm":"fixed_window","limit":20,"window":"1h","per":"ip"}],
	"prices":[
		{"meter":"paged-a","model":"per_unit","unit_price":"0.00005","included":1000000},
		{"meter":"paged-b","model":"per_unit","unit_price":"0.02","included":1000}]}`

// widePlans are plans with as many limits as one may have: 1,000 limits in all.
const widePlans, wideLimits = 10, 100

// makePages makes what the timed pages show.
func (b *bench) makePages(ctx context.Context) error {
	puts := [][2]string{}
	put := func(path, body string) { puts = append(puts, [2]string{path, body}) }
	for _, m := range []string{"a", "b", "c", "d", "e"} {
		put("/v1/meters/paged-"+m, `{"unit":"call","name":"Calls of `+m+`"}`)
	}
	put("/v1/plans/paged", pagedPlan)
	now := time.Now().UTC().Truncate(time.Hour)
	for _, key := range []string{"paged", "wide"} {
		if key == "wide" {
			for i := range widePlans {
				put(fmt.Sprintf("/v1/plans/wide-%d", i), widePlan())
			}
		}
		plan := map[string]string{"paged": "paged", "wide": "wide-0"}[key]
		put("/v1/customers/"+key, fmt.Sprintf(`{"name":"Customer %s","plan":%q,"timezone":"Europe/Berlin"}`, key, plan))
	}
	put("/v1/customers/paged/billing", fmt.Sprintf(`{"starts_at":%q}`, now.AddDate(0, 0, -40).Format(time.RFC3339)))
	for _, p := range puts {
		if err := b.service.put(ctx, p[0], p[1]); err != nil {
			return err
		}
	}
	var lines strings.Builder
	for i := 1; i < 60*24; i++ {
		fmt.Fprintf(&lines, `{"id":"paged-%d","customer":"paged","meter":"paged-a","cost":%d,"at":%q}`+"\n", i, 100+i%900,
			now.Add(-time.Duration(i)*time.Hour).Format(time.RFC3339))
	}
	if _, err := b.service.call(ctx, "POST", "/v1/imports", lines.String()); err != nil {
		return err
	}
	for _, hit := range []string{`"meter":"paged-a","cost":4000`, `"meter":"paged-b","cost":150`, `"meter":"paged-c","cost":60`, `"meter":"paged-d","cost":22`} {
		if _, err := b.service.call(ctx, "POST", "/v1/hits", `{"customer":"paged",`+hit+`}`); err != nil {
			return err
		}
	}
	_, err := b.service.call(ctx, "POST", "/v1/hits?deny_status=200", `{"customer":"paged","meter":"paged-a","cost":4000}`)
	return err
}

func widePlan() string {
	var limits []string
	for i := range wideLimits {
		limits = append(limits, fmt.Sprintf(`{"name":"limit-%d","meter":"paged-%c","algorithm":"fixed_window","limit":%d,"window":"%dh"}`, i, "abcde"[i%5],
			1000+i, 1+i))
	}
	return `{"name":"Wide","currency":"USD","interval":"month","limits":[` + strings.Join(limits, ",") + `]}`
}
