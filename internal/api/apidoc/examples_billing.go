package apidoc

import (
	"maps"
	"strings"
)

// invoiceExample is a finalized invoice.
const invoiceExample = `{
  "id": "0f8fad5b-d9cb-469f-a165-70867728950e", "number": "Q-17", "kind": "period", "customer": "acme",
  "status": "finalized", "currency": "USD",
  "period_start": "2026-10-01T00:00:00Z", "period_end": "2026-11-01T00:00:00Z", "price_version": 1,
  "lines": [
    {"n": 1, "kind": "base", "meter": null, "description": "Base price, Pro",
     "from": "2026-10-01T00:00:00Z", "to": "2026-11-01T00:00:00Z", "quantity": 0, "included": 0,
     "plan_version": 1, "tiers": [], "amount_minor": 2000, "of_invoice": null,
     "unit_price": null, "package_size": null, "package_price": null, "level": null, "applied": null, "part": null, "whole_minor": 2000},
    {"n": 2, "kind": "usage", "meter": "requests", "description": "requests: 103 × request",
     "from": "2026-10-01T00:00:00Z", "to": "2026-11-01T00:00:00Z", "quantity": 103, "included": 3,
     "plan_version": 1, "tiers": [], "amount_minor": 100, "of_invoice": null,
     "unit_price": "0.01", "package_size": null, "package_price": null, "level": null, "applied": null, "part": null, "whole_minor": null}
  ],
  "subtotal_minor": 2100,
  "taxes": [{"name": "VAT", "percent": "19", "base_minor": 2100, "tax_minor": 399}],
  "tax_minor": 399, "total_minor": 2499, "credits_minor": 0, "amount_due_minor": 2499, "credited_minor": 0, "paid_minor": 0, "open_minor": 2499, "payments": [],
  "seller": {"key": "default", "name": "Quota Ltd", "address": ["1 High Street"]},
  "buyer": {"name": "Acme", "address": ["2 Low Street"], "country": "DE"},
  "due_at": "2026-11-15T01:00:10Z", "overdue": false, "held": null, "of": null, "finalized_at": "2026-11-01T01:00:10Z",
  "paid_at": null, "reference": null, "void_reason": null, "reason": null
}`

// partlyPaidExample is invoiceExample after a partial payment.
var partlyPaidExample = strings.Replace(invoiceExample, `"paid_minor": 0, "open_minor": 2499, "payments": [],`, `"paid_minor": 1000, "open_minor": 1499,
  "payments": [{"n": 1, "at": "2026-11-12T09:30:00.123456Z", "amount_minor": 1000, "kind": "payment", "reference": "transfer of 12 November"}],`, 1)

// paidByCreditsExample is invoiceExample after credits paid the whole invoice.
var paidByCreditsExample = strings.NewReplacer(`"status": "finalized"`, `"status": "paid"`, `"paid_minor": 0, "open_minor": 2499, "payments": [],`,
	`"paid_minor": 2499, "open_minor": 0,
  "payments": [{"n": 1, "at": "2026-11-12T09:30:00.123456Z", "amount_minor": 2499, "kind": "credits", "reference": null}],`,
	`"paid_at": null`, `"paid_at": "2026-11-12T09:30:00.123456Z"`).Replace(invoiceExample)

const invoiceID = "0f8fad5b-d9cb-469f-a165-70867728950e"

const accountExample = `{
  "starts_at": "2026-11-20T06:00:00Z", "trial_ends_at": "2026-12-04T00:00:00Z", "ends_at": null, "after_end": "block", "seller": "default",
  "buyer": {"name": "Acme", "address": ["2 Low Street"], "country": "DE", "tax_id": "DE123456789"},
  "taxes": [{"name": "VAT", "percent": "0", "inclusive": false, "note": "Reverse charge"}], "due_days": 14,
  "order_reference": "PO 4711", "notes": ["Cost centre 42"], "currency": "USD", "billed_until": null
}`

const ownPriceExample = `{
  "meter": "requests", "model": "per_unit", "unit_price": "0.0003", "included": 1000, "from": "2026-12-01T00:00:00Z"
}`

const capExample = `{"meter": "requests", "amount_minor": 5000, "units": 5003, "reason": null}`

const sellerExample = `{
  "key": "default", "name": "Quota Ltd", "address": ["1 High Street"], "country": "DE", "tax_id": "DE987654321",
  "registration": "Amtsgericht Charlottenburg, HRB 12345", "email": "billing@quota.example",
  "payment": ["IBAN DE02 1203 0000 0000 2020 51"], "footer": ["Thank you for your trust."],
  "prefix": "Q-", "credit_note_prefix": "N-", "next_number": 100
}`

// accountExamples contains the examples of accounts, prices of a customer's own, and sellers.
var accountExamples = map[string]Example{
	"billing.put": {
		Path: "acme",
		Request: `{
  "trial_ends_at": "2036-12-04T00:00:00Z", "due_days": 14,
  "buyer": {"name": "Acme", "address": ["2 Low Street"], "country": "DE", "tax_id": "DE123456789"},
  "taxes": [{"name": "VAT", "percent": "0", "inclusive": false, "note": "Reverse charge"}],
  "order_reference": "PO 4711", "notes": ["Cost centre 42"]
}`,
		Response: accountExample,
	},
	"billing.get":   {Path: "acme", Response: accountExample},
	"prices.put":    {Path: "acme", Request: `{"model": "per_unit", "unit_price": "0.0003", "included": 1000}`, Response: ownPriceExample},
	"prices.get":    {Path: "acme", Response: ownPriceExample},
	"prices.delete": {Path: "acme"},
	"prices.list":   {Path: "acme", Response: `{"items": [` + ownPriceExample + `], "next_cursor": null}`},
	"caps.put":      {Path: "acme", Request: `{"amount_minor": 5000}`, Response: capExample},
	"caps.get":      {Path: "acme", Response: capExample},
	"caps.delete":   {Path: "acme"},
	"caps.list":     {Path: "acme", Response: `{"items": [` + capExample + `], "next_cursor": null}`},
	"sellers.put": {
		Path: "default",
		Request: `{
  "name": "Quota Ltd", "address": ["1 High Street"], "country": "DE", "tax_id": "DE987654321",
  "registration": "Amtsgericht Charlottenburg, HRB 12345", "email": "billing@quota.example",
  "payment": ["IBAN DE02 1203 0000 0000 2020 51"], "footer": ["Thank you for your trust."],
  "prefix": "Q-", "credit_note_prefix": "N-", "next_number": 100
}`,
		Response: sellerExample,
	},
	"sellers.get":  {Path: "default", Response: sellerExample},
	"sellers.list": {Response: `{"items": [` + sellerExample + `], "next_cursor": null}`},

	"portalSessions.create": {
		Request: `{"customer": "acme", "path": "/portal", "theme": "auto"}`,
		Response: `{
  "url": "https://quota.example.com/portal/enter/3rUJGAeXCRKuW4-L5R9d6tP0ZpbXHCDnRK0B9uqFGYs",
  "expires_at": "2026-11-20T06:10:00.123456Z"
}`,
	},
}

// billingExamples contains the examples of invoices, charges and credits.
var billingExamples = map[string]Example{
	"invoices.listForCustomer": {Path: "acme", Response: `{"items": [` + invoiceExample + `], "next_cursor": null}`},
	"invoices.upcoming":        {Path: "acme", Response: invoiceExample},
	"invoices.list":            {Query: "?status=finalized", Response: `{"items": [` + invoiceExample + `], "next_cursor": null}`},
	"invoices.get":             {Path: invoiceID, Response: invoiceExample},
	"invoices.listCSV":         {Query: "?status=finalized"},
	"invoices.getHTML":         {Path: invoiceID},
	"invoices.getCSV":          {Path: invoiceID},
	"invoices.getPDF":          {Path: invoiceID},
	"invoices.lineUsage": {Path: invoiceID, Response: `{
  "hours": [{"start": "2026-10-07T09:00:00Z", "admitted": 108}],
  "adjustments": [{"hour": "2026-10-07T09:00:00Z", "at": "2026-10-08T10:00:00Z", "cost": -5, "reason": "a test run"}],
  "next_cursor": null
}`},
	"invoices.finalize": {Path: invoiceID, Response: invoiceExample},
	"invoices.pay": {
		Path: invoiceID, Request: `{"amount_minor": 1000, "reference": "transfer of 12 November", "id": "transfer-4711"}`,
		Response: partlyPaidExample,
	},
	"invoices.reversePayment": {Path: invoiceID, Request: `{"reason": "the debit bounced", "id": "bounce-4711"}`, Response: invoiceExample},
	"invoices.applyCredits":   {Path: invoiceID, Response: paidByCreditsExample},
	"invoices.void":           {Path: invoiceID, Request: `{"reason": "the address was wrong", "reissue": true}`, Response: invoiceExample},
	"invoices.createCreditNote": {
		Path:     invoiceID,
		Request:  `{"lines": [{"n": 2, "amount_minor": 50}], "reason": "an outage", "to": "outside", "id": "outage-7"}`,
		Response: invoiceExample,
	},
	"charges.create": {
		Path:    "acme",
		Request: `{"description": "Setup", "amount_minor": 5000, "currency": "USD", "id": "setup"}`,
		Response: `{
  "customer": "acme", "id": "setup", "description": "Setup", "amount_minor": 5000, "currency": "USD",
  "at": "2026-11-20T06:00:00.123456Z", "replayed": false
}`,
	},
	"credits.grant": {
		Path:    "acme",
		Request: `{"amount_minor": 1000, "currency": "USD", "id": "welcome"}`,
		Response: `{
  "customer": "acme", "id": "welcome", "kind": "promotional", "amount_minor": 1000, "left_minor": 1000, "currency": "USD",
  "priority": 50, "expires_at": null, "at": "2026-11-20T06:00:00.123456Z", "replayed": false
}`,
	},
	"credits.withdraw": {
		Path:    "acme",
		Request: `{"amount_minor": 400, "reason": "granted twice", "id": "welcome-back"}`,
		Response: `{
  "customer": "acme", "id": "welcome", "kind": "promotional", "amount_minor": 1000, "left_minor": 600, "currency": "USD",
  "priority": 50, "expires_at": null, "at": "2026-11-20T06:00:00.123456Z", "withdrawn_minor": 400, "replayed": false
}`,
	},
	"reconcile.get": {Response: `{
  "ok": false,
  "checks": [
    {"name": "charged_is_booked", "checked": 2400, "rows": 0, "examples": []},
    {"name": "usage_is_billed", "checked": 310, "rows": 1, "examples": [
      {"customer": "acme", "meter": "requests", "invoice": "` + invoiceID + `", "number": "Q-17", "at": "2026-10-01T00:00:00Z",
       "detail": "Line 2, usage, has another quantity than its hours and adjustments add up to.", "expected": 104, "found": 103}
    ]}
  ]
}`},
	"credits.list": {Path: "acme", Response: `{
  "customer": "acme",
  "balances": [{"id": "welcome", "kind": "promotional", "amount_minor": 1000, "left_minor": 1000, "currency": "USD",
    "priority": 50, "expires_at": null, "at": "2026-11-20T06:00:00.123456Z"}],
  "entries": [{"credit": "welcome", "kind": "granted", "amount_minor": 1000, "invoice": null, "at": "2026-11-20T06:00:00.123456Z"}],
  "next_cursor": null
}`},
}

func init() {
	maps.Copy(Examples, billingExamples)
	maps.Copy(Examples, accountExamples)
}
