package apidoc

import "quotad/internal/api/respond"

// Example is the example in an operation's documentation: the key or id in the path, the request body and the
// response. The OpenAPI document contains the examples and is validated with them. A test sends the requests.
type Example struct {
	Path, Query, Request, Response string
	Headers                        []string // alternating names and values
}

// Examples contains the examples of all operations, by operation id. The requests can be pasted unchanged on the
// demo of quotad serve --demo.
var Examples = map[string]Example{
	"hits.authorize": {Query: "?meter=requests", Headers: []string{"X-Quotad-Customer", "acme"}},
	"hits.create": {
		Request: `{"customer": "acme", "meter": "requests", "cost": 1}`,
		Response: `{
  "allowed": true, "customer": "acme", "meter": "requests", "cost": 1,
  "at": "2026-11-20T06:00:00.123456Z", "replayed": false, "retry_after_ms": 0,
  "limits": [
    {"name": "hourly", "algorithm": "fixed_window", "mode": "hard", "limit": 5000,
     "used": 1, "remaining": 4999, "exceeded": false, "retry_after_ms": 0,
     "reset_at": "2026-11-20T07:00:00Z", "window": "1h"}
  ]
}`,
	},
	"hits.createBatch": {
		Request: `{"hits": [
  {"customer": "acme", "meter": "requests", "cost": 2},
  {"customer": "nobody", "meter": "requests"}
]}`,
		Response: `{"results": [
  {"allowed": true, "customer": "acme", "meter": "requests", "cost": 2,
   "at": "2026-11-20T06:00:00.123456Z", "replayed": false, "retry_after_ms": 0,
   "limits": [
     {"name": "hourly", "algorithm": "fixed_window", "mode": "hard", "limit": 5000,
      "used": 3, "remaining": 4997, "exceeded": false, "retry_after_ms": 0,
      "reset_at": "2026-11-20T07:00:00Z", "window": "1h"}
   ]},
  {"type": "/problems/not-found", "title": "Not found", "status": 404,
   "detail": "there is no customer \"nobody\", or it is archived for good: a new one is made with PUT /v1/customers/nobody"}
]}`,
	},
	"refunds.create": {
		Request: `{"customer": "acme", "meter": "requests", "cost": 1, "id": "order-4711-refund"}`,
		Response: `{
  "customer": "acme", "meter": "requests", "cost": 1, "refunded": 1,
  "at": "2026-11-20T06:00:00.123456Z", "replayed": false,
  "limits": [
    {"name": "hourly", "algorithm": "fixed_window", "mode": "hard", "limit": 5000,
     "used": 2, "remaining": 4998, "exceeded": false, "retry_after_ms": 0,
     "reset_at": "2026-11-20T07:00:00Z", "window": "1h"}
  ]
}`,
	},
	"levels.put": {
		Path:    "acme",
		Request: `{"level": 4}`,
		Response: `{
  "allowed": true, "customer": "acme", "meter": "seats", "cost": 1,
  "at": "2026-11-20T06:00:00.123456Z", "replayed": false, "retry_after_ms": 0,
  "limits": [
    {"name": "seats", "algorithm": "allocation", "mode": "hard", "limit": 5,
     "used": 4, "remaining": 1, "exceeded": false, "retry_after_ms": 0,
     "reset_at": null, "window": null}
  ]
}`,
	},
	"reservations.create": {
		Request: `{"customer": "acme", "meter": "requests", "cost": 3, "ttl_ms": 60000}`,
		Response: `{
  "id": "` + reservationExample + `", "expires_at": "2026-11-20T06:01:00.123456Z",
  "allowed": true, "customer": "acme", "meter": "requests", "cost": 3,
  "at": "2026-11-20T06:00:00.123456Z", "replayed": false, "retry_after_ms": 0,
  "limits": [
    {"name": "hourly", "algorithm": "fixed_window", "mode": "hard", "limit": 5000,
     "used": 5, "remaining": 4995, "exceeded": false, "retry_after_ms": 0,
     "reset_at": "2026-11-20T07:00:00Z", "window": "1h"}
  ]
}`,
	},
	"reservations.commit": {
		Path: reservationExample, Request: `{"cost": 2}`,
		Response: `{
  "id": "` + reservationExample + `", "customer": "acme", "meter": "requests",
  "cost": 2, "reserved": 3, "late": false,
  "at": "2026-11-20T06:00:12.5Z", "replayed": false,
  "limits": [
    {"name": "hourly", "algorithm": "fixed_window", "mode": "hard", "limit": 5000,
     "used": 4, "remaining": 4996, "exceeded": false, "retry_after_ms": 0,
     "reset_at": "2026-11-20T07:00:00Z", "window": "1h"}
  ]
}`,
	},
	"reservations.release": {Path: reservationExample},
	"reservations.list": {
		Path: "acme", Query: "?meter=requests",
		Response: `{"items": [
  {"id": "` + reservationExample + `", "meter": "requests", "cost": 3, "attributes": {},
   "created_at": "2026-11-20T06:00:00.123456Z", "expires_at": "2026-11-20T06:01:00.123456Z"}
], "next_cursor": null}`,
	},
	"imports.create": {
		Request: `{"id": "old-1", "customer": "acme", "meter": "requests", "cost": 1200, "at": "2026-01-31T12:00:00Z"}
{"id": "old-2", "customer": "acme", "meter": "requests", "limit": "hourly", "used": 3}
{"id": "old-3", "customer": "nobody", "meter": "requests", "limit": "hourly", "used": 3}`,
		Response: `{"errors": [
  {"line": 3, "id": "old-3", "status": 404, "type": "/problems/not-found",
   "detail": "there is no customer \"nobody\", or it is archived for good: a new one is made with PUT /v1/customers/nobody",
   "field": "customer"}
], "lines": 3, "imported": 2, "replayed": 0, "failed": 1}`,
	},
	"quota.get": {
		Path: "acme",
		Response: `{
  "customer": "acme", "plan": "demo", "plan_version": 1,
  "at": "2026-11-20T06:00:00.123456Z", "features": {},
  "limits": [
    {"name": "hourly", "algorithm": "fixed_window", "mode": "hard", "limit": 5000,
     "used": 3, "remaining": 4997, "exceeded": false, "retry_after_ms": 0,
     "reset_at": "2026-11-20T07:00:00Z", "window": "1h", "window_start": "2026-11-20T06:00:00Z",
     "meter": "requests", "reserved": 0}
  ],
  "meters": [
    {"meter": "requests", "unit": "request", "period_start": "2026-11-20T05:00:00Z",
     "period_end": "2026-12-20T05:00:00Z", "kind": "flow", "used": 3, "included": 0, "overage": 3, "price_version": 1,
     "amount_minor": null, "currency": "USD"}
  ]
}`,
	},
	"usage.get": {
		Path: "acme", Query: "?meter=requests&granularity=day",
		Response: `{"points": [{"start": "2026-11-20T00:00:00Z", "admitted": 3, "denied": 0}]}`,
	},
	"meters.put": {
		Path: "requests", Request: `{"unit": "request", "name": "API requests"}`,
		Response: meterExample,
	},
	"drafts.put": {
		Path:     "starter",
		Request:  `{"name": "Starter", "currency": "USD", "interval": "month", "limits": []}`,
		Response: draftExample,
	},
	"drafts.get":    {Path: "starter", Response: draftExample},
	"drafts.delete": {Path: "starter"},
	"drafts.play": {
		Path:    "starter",
		Request: `{"meter": "requests", "traffic": {"pattern": "steady", "window": "1m", "windows": 1, "steady": 1}}`,
		Response: `{
  "draft": {
    "length_us": 60000000, "admitted": {"hits": 1, "units": 1}, "refused": {"hits": 0, "units": 0},
    "longest_wait_ms": 0, "hopeless": 0, "refusal": null,
    "hits": [{"at_us": 30000000, "cost": 1, "admitted": true, "retry_after_ms": 0}], "limits": []
  }
}`,
	},
	"drafts.compare": {
		Path:    "starter",
		Request: `{"customer": "acme"}`,
		Response: `{
  "from": "2026-10-21T14:00:00Z", "to": "2026-11-20T14:00:00Z", "customers": 1, "chosen": 1, "others": false,
  "asked": 5200, "recorded_refused": 200, "currency": "USD",
  "in_force": {"refused": {"least": 200, "most": 200}, "customers_refused": {"least": 1, "most": 1}, "billed_minor": {"least": 1740, "most": 1740}},
  "draft": {"refused": {"least": 0, "most": 0}, "customers_refused": {"least": 0, "most": 0}, "billed_minor": {"least": 1780, "most": 1780}},
  "limits": [
    {"meter": "requests", "limit": "hourly",
     "in_force": {"how": "by_hour", "refused": {"least": 200, "most": 200}, "customers": {"least": 1, "most": 1}},
     "draft": {"how": "by_hour", "refused": {"least": 0, "most": 0}, "customers": {"least": 0, "most": 0}}}
  ],
  "notes": [{"name": "retries", "text": "Refused units count every retry."}]
}`,
	},
	"meters.get":  {Path: "requests", Response: meterExample},
	"meters.list": {Response: `{"items": [` + meterExample + `], "next_cursor": null}`},
	"plans.put": {
		Path: "starter",
		Request: `{
  "name": "Starter", "currency": "USD", "interval": "month", "base_price_minor": 900,
  "limits": [
    {"name": "hourly", "meter": "requests", "algorithm": "fixed_window",
     "limit": 5000, "window": "1h"},
    {"name": "daily", "meter": "requests", "algorithm": "token_bucket",
     "limit": 200, "window": "1d", "burst": 300, "notify": [80, 100], "on_outage": "deny"}
  ],
  "prices": [
    {"meter": "requests", "model": "per_unit", "unit_price": "0.002", "included": 1000}
  ]
}`,
		Response: planExample,
	},
	"plans.get":          {Path: "starter", Response: planExample},
	"plans.list":         {Response: `{"items": [` + planExample + `], "next_cursor": null}`},
	"plans.listVersions": {Path: "starter", Response: `{"items": [` + planExample + `], "next_cursor": null}`},
	"plans.getVersion":   {Path: "starter", Response: planExample},
	"customers.put": {
		Path: "initech",
		Request: `{
  "name": "Initech", "plan": "starter", "timezone": "Europe/Berlin",
  "billing_anchor": "2026-01-31T00:00:00", "metadata": {"crm": "4711"},
  "features": {"seats": 25}
}`,
		Response: customerExample,
	},
	"customers.get":     {Path: "initech", Response: customerExample},
	"customers.list":    {Response: `{"items": [` + customerExample + `], "next_cursor": null}`},
	"customers.archive": {Path: "initech", Response: erasedExample},
	"adjustments.create": {
		Path:    "initech",
		Request: `{"meter": "requests", "cost": -2, "reason": "counted twice by the old gateway", "id": "ticket-4711"}`,
		Response: `{
  "customer": "initech", "meter": "requests", "cost": -2, "reason": "counted twice by the old gateway",
  "at": "2026-11-20T06:00:00.123456Z", "replayed": false
}`,
	},
	"overrides.put": {
		Path: "initech", Request: `{"limit": 8000, "expires_at": "2036-01-01T00:00:00Z"}`,
		Response: overrideExample,
	},
	"customers.suspend": {
		Path: "initech", Request: `{"reason": "The invoice of October is not paid."}`,
		Response: `{"reason": "The invoice of October is not paid.", "at": "2026-11-20T06:00:00.123456Z"}`,
	},
	"customers.resume": {Path: "initech"},
	"scheduledChange.put": {
		Path: "initech", Request: `{"plan": "pro"}`,
		Response: `{"plan": "pro", "plan_version": 3, "at": "2036-12-01T00:00:00Z"}`,
	},
	"planRequests.create": {
		Path: "initech", Request: `{"plan": "pro"}`,
		Response: `{"plan": "pro", "at": "2026-11-20T06:00:00.123456Z"}`,
	},
	"planRequests.list": {Path: "initech", Response: `{"items": [{"plan": "pro", "at": "2026-11-20T06:00:00.123456Z"}], "next_cursor": null}`},
	"customers.preview": {
		Path: "initech", Request: `{"plan": "pro", "change": "limits_now"}`,
		Response: `{"at": "2026-11-20T06:00:00.123456Z", "invoice": null, "upcoming": ` + invoiceExample + `, "limits": [
  {"name": "hourly", "algorithm": "fixed_window", "mode": "hard", "limit": 5000,
   "used": 3, "remaining": 4997, "exceeded": false, "retry_after_ms": 0,
   "reset_at": "2026-11-20T07:00:00Z", "window": "1h", "window_start": "2026-11-20T06:00:00Z",
   "meter": "requests", "reserved": 0}
]}`,
	},
	"scheduledChange.get":    {Path: "initech", Response: `{"plan": "pro", "plan_version": 3, "at": "2036-12-01T00:00:00Z"}`},
	"scheduledChange.delete": {Path: "initech"},
	"overrides.delete":       {Path: "initech"},
	"overrides.list":         {Path: "initech", Response: `{"items": [` + overrideExample + `], "next_cursor": null}`},
	"testClocks.put":         {Path: "january", Request: `{"now": "2026-01-31T23:59:00Z"}`, Response: clockExample},
	"testClocks.get":         {Path: "january", Response: clockExample},
	"testClocks.list":        {Response: `{"items": [` + clockExample + `], "next_cursor": null}`},
	"keys.create": {
		Request: `{"name": "shop backend", "scope": "backend", "expires_at": "2036-01-01T00:00:00Z"}`,
		Response: `{
  "id": "key_UCv9xkpQkUuJ", "name": "shop backend", "scope": "backend",
  "created_at": "2026-11-20T06:00:00.123456Z", "expires_at": "2036-01-01T00:00:00Z",
  "used_on": null, "secret": "qk_…"
}`,
	},
	"keys.list": {Response: `{"items": [
  {"id": "key_UCv9xkpQkUuJ", "name": "shop backend", "scope": "backend",
   "created_at": "2026-11-20T06:00:00.123456Z", "expires_at": null, "used_on": "2026-11-20"}
], "next_cursor": null}`},
	"refusals.list": {Path: "acme", Query: "?meter=requests", Response: `{"items": [
  {"limit": "hourly", "meter": "requests", "from": "2026-11-20T06:12:00.5Z", "to": "2026-11-20T06:31:07.25Z",
   "units": 812, "admitted_at": "2026-11-20T07:00:00Z"}
], "next_cursor": null}`},
	"audit.list": {Query: "?target=customers/acme", Response: `{"items": [
  {"id": 4711, "at": "2026-11-20T06:00:00.123456Z", "actor": "key_UCv9xkpQkUuJ", "actor_name": "back office",
   "action": "create", "target": "customers/acme/overrides/hourly",
   "before": null, "after": {"limit": 9000, "expires_at": null}, "request_id": "req_kV2nQfR1b0uT3cXy"}
], "next_cursor": null}`},
	"events.list": {Query: "?after=4710&type=invoice.finalized", Response: `{"items": [
  {"id": 4711, "type": "invoice.finalized", "at": "2026-12-01T01:00:10Z", "customer": "acme", "test_clock": null,
   "data": {"id": "019b3f1c-5d1c-7a3e-9f6b-2f1f7f0d6a11", "number": "INV-17", "kind": "period", "status": "finalized",
    "currency": "USD", "total_minor": 2380, "amount_due_minor": 2380, "credited_minor": 0}}
], "next_cursor": null}`},
	"webhooks.create": {
		Request: `{"url": "https://example.com/quotad", "types": ["invoice.finalized", "invoice.paid"]}`,
		Response: `{"id": "wh_UCv9xkpQkUuJ", "url": "https://example.com/quotad", "types": ["invoice.finalized", "invoice.paid"],
  "created_at": "2026-11-20T06:00:00.123456Z", "old_secret_until": null, "failing_since": null, "disabled_at": null, "disabled_for": null,
  "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}`,
	},
	"webhooks.list": {Response: `{"items": [
  {"id": "wh_UCv9xkpQkUuJ", "url": "https://example.com/quotad", "types": [],
   "created_at": "2026-11-20T06:00:00.123456Z", "old_secret_until": null, "failing_since": null, "disabled_at": null, "disabled_for": null}
], "next_cursor": null}`},
	"webhooks.delete": {Path: "wh_UCv9xkpQkUuJ"},
	"webhooks.rotateSecret": {Path: "wh_UCv9xkpQkUuJ", Response: `{"id": "wh_UCv9xkpQkUuJ", "url": "https://example.com/quotad", "types": [],
  "created_at": "2026-11-20T06:00:00.123456Z", "old_secret_until": "2026-11-22T06:00:00.123456Z", "failing_since": null,
  "disabled_at": null, "disabled_for": null,
  "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}`},
	"webhooks.test": {Path: "wh_UCv9xkpQkUuJ", Response: `{"delivered": false, "status": 500, "error": "the answer is 500", "enabled": false}`},
	"webhooks.listDeliveries": {Path: "wh_UCv9xkpQkUuJ", Response: `{"items": [
  {"event": 4711, "type": "invoice.finalized", "state": "waiting", "attempts": 2, "due_at": "2026-11-20T06:00:35Z",
   "last_at": "2026-11-20T06:00:05.5Z", "status": 503, "error": "the answer is 503"}
], "next_cursor": null}`},
	"webhooks.replay": {Path: "wh_UCv9xkpQkUuJ", Request: `{"from": "2026-11-20T06:00:00Z", "to": "2026-11-20T09:00:00Z"}`, Response: `{"deliveries": 37}`},
	"keys.revoke":     {Path: "key_UCv9xkpQkUuJ"},
	"overview.get": {Response: `{
  "at": "2026-11-20T06:00:00.123456Z", "failed": [],
  "concerns": [{"name": "node_silent", "text": "Node web-2:8080 has not been heard of for 3 minutes. It was killed, or cannot write to the database."}],
  "decisions": {
    "per_second": "1204.5", "seconds": 60,
    "recent": {"from": "2026-11-20T05:59:00Z", "admitted": 71200, "refused": 1070},
    "hour": {"from": "2026-11-20T05:00:00Z", "admitted": 4301122, "refused": 60417},
    "day": {"from": "2026-11-19T06:00:00Z", "admitted": 98112004, "refused": 1204418}
  },
  "nodes": [
    {"name": "web-1:8080", "version": "1.4.0", "state": "ready", "started_at": "2026-11-18T09:12:44.5Z", "seen_at": "2026-11-20T06:00:00Z",
     "per_second": "1204.5"},
    {"name": "web-2:8080", "version": "1.4.0", "state": "silent", "started_at": "2026-11-18T09:13:02.25Z", "seen_at": "2026-11-20T05:56:41Z",
     "per_second": "0.0"}
  ],
  "fullest": {
    "as_of": "2026-11-20T05:59:52.7Z", "counters": 2400, "judged": 2400, "complete": true,
    "items": [{"customer": "acme", "name": "Acme GmbH", "meter": "requests", "limit": "hourly", "mode": "hard", "used": 4810, "of": 5000, "percent": 96}]
  },
  "database": {
    "version": "17.6", "size_bytes": 734003200, "connections": 41, "max_connections": 100, "read_only": false,
    "replicas": 1, "replica_lag_bytes": 1024, "oldest_transaction_at": null
  },
  "books": {"checked_at": "2026-11-20T03:00:07Z", "disagreeing": [], "overdue_invoices": 0, "blocked_customers": 0}
}`},
	"service.livez":   {Response: `{"status": "ok"}`},
	"service.readyz":  {Response: `{"status": "ready"}`},
	"service.problem": {Path: "not-found"},
}

const (
	reservationExample = "rsv_AAAAAAAAAAEAAAABq0xW2c1Zt4mVh0yQ8n3b7w"

	meterExample = `{"key": "requests", "unit": "request", "name": "API requests", "kind": "flow"}`
	planExample  = `{
  "key": "starter", "version": 1, "created_at": "2026-11-20T06:00:00.123456Z",
  "name": "Starter", "currency": "USD", "interval": "month", "interval_count": 1,
  "base_price_minor": 900, "base_in": "arrears", "base_every": 1, "minimum_minor": 0, "meters": [], "features": {},
  "limits": [
    {"name": "hourly", "meter": "requests", "algorithm": "fixed_window",
     "limit": 5000, "window": "1h", "align": "clock", "mode": "hard", "on_outage": "allow"},
    {"name": "daily", "meter": "requests", "algorithm": "token_bucket",
     "limit": 200, "window": "1d", "burst": 300, "mode": "hard", "on_outage": "deny", "notify": [80, 100]}
  ],
  "prices": [
    {"meter": "requests", "model": "per_unit", "unit_price": "0.002", "included": 1000}
  ],
  "apply_to": "all"
}`
	customerExample = `{
  "key": "initech", "name": "Initech", "plan": "starter", "plan_version": null,
  "effective_version": 1, "timezone": "Europe/Berlin", "billing_anchor": "2026-01-31T00:00:00",
  "metadata": {"crm": "4711"}, "test_clock": null, "anonymous": false, "features": {"seats": 25},
  "created_at": "2026-11-20T06:00:00.123456Z", "archived_at": null, "erased_at": null
}`
	erasedExample = `{
  "key": "erased:7", "name": "", "plan": "starter", "plan_version": null,
  "effective_version": 1, "timezone": "Europe/Berlin", "billing_anchor": "2026-01-31T00:00:00",
  "metadata": {}, "test_clock": null, "anonymous": false, "features": {}, "created_at": "2026-11-20T06:00:00.123456Z",
  "archived_at": "2026-12-01T09:30:00.5Z", "erased_at": "2026-12-01T09:30:00.5Z"
}`
	clockExample    = `{"key": "january", "now": "2026-01-31T23:59:00Z"}`
	overrideExample = `{
  "name": "hourly", "limit": 8000, "expires_at": "2036-01-01T00:00:00Z", "in_force": true
}`
	refusalExample = `{
  "type": "` + respond.QuotaExceeded + `",
  "title": "Quota exceeded", "status": 429,
  "detail": "Limit daily is used up. The hit costs 1: send it again in 7 min 11 s.",
  "violated-policies": ["daily"],
  "allowed": false, "customer": "acme", "meter": "requests", "cost": 1,
  "at": "2026-11-20T06:00:00.123456Z", "replayed": false, "retry_after_ms": 430400,
  "limits": [
    {"name": "daily", "algorithm": "token_bucket", "mode": "hard", "limit": 200,
     "used": 200, "remaining": 0, "exceeded": false, "retry_after_ms": 430400,
     "reset_at": "2026-11-21T05:59:58.523456Z", "window": "1d"}
  ]
}`
)

const draftExample = `{
  "key": "starter", "based_on": 1, "latest_version": 1, "saved_at": "2026-11-20T14:03:11Z",
  "plan": {"name": "Starter", "currency": "USD", "interval": "month", "limits": []}, "problems": []
}`
