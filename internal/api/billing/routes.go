package billing

import (
	"reflect"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
)

var invoiceParams = append([]apidoc.Param{
	{Name: "customer", Type: "string", Doc: "The customer's key. All customers when left out."},
	{
		Name: "test_clock", Type: "string",
		Doc: "Invoices of customers on this test clock. With `any` those of all customers. When left out, those of customers on no test clock.",
	},
	{
		Name: "status", Type: "string",
		Doc:  "Invoices of this status only. `overdue`: those that are finalized, with something open, and whose `due_at` is over.",
		Enum: []string{"draft", "finalized", "paid", "void", "credited", "overdue"},
	},
	{Name: "from", Type: "date-time", Doc: "Periods that end then or later."},
	{Name: "to", Type: "date-time", Doc: "Periods that end before."},
}, request.Paging...)

var projectionParam = apidoc.Param{
	Name: "projection", Type: "string",
	Doc: "With `true` the answer also has `projection`: what the invoice would come to at the present pace.", Enum: []string{"true", "false"},
}

var (
	lineUsagePaging = []apidoc.Param{
		{Name: "limit", Type: "integer", Doc: "How many hours and adjustments a page has at most. 100,000 when left out.", Most: plans.MaxPage},
		request.Paging[1],
	}
	creditsPaging = []apidoc.Param{
		{Name: "limit", Type: "integer", Doc: "How many credits, and how many entries, a page has at most. 1,000 when left out.", Most: plans.MaxPage},
		request.Paging[1],
	}
)

// invoiceRoutes are those of invoices, charges and credits.
func (s *Room) invoiceRoutes() []serve.Route {
	const ofCustomer, one = "/v1/customers/{key}", "/v1/invoices/{id}"
	missing := []*problem.Kind{problem.KindNotFound, problem.KindConflict}
	archived := []*problem.Kind{problem.KindNotFound, problem.KindConflict, problem.KindArchived}
	once := append([]*problem.Kind{problem.KindIDReused}, missing...)
	invoice, page := reflect.TypeFor[client.Invoice](), reflect.TypeFor[client.List[client.Invoice]]()
	get := func(pattern, id, summary string, response reflect.Type, params []apidoc.Param, handle func(*serve.Call) (serve.Answer, error)) serve.Route {
		return serve.Route{Operation: apidoc.Operation{
			Method: "GET", Pattern: pattern, Access: apidoc.Readers, Tag: "Billing", ID: id, Summary: summary,
			Params: params, Response: response, Status: serve.OK200, Problems: missing,
		}, Handle: handle}
	}
	post := func(pattern, id, summary string, request, response reflect.Type, status []int, problems []*problem.Kind,
		handle func(*serve.Call) (serve.Answer, error),
	) serve.Route {
		return serve.Route{Operation: apidoc.Operation{
			Method: "POST", Pattern: pattern, Access: apidoc.AdminOnly, Tag: "Billing", ID: id, Summary: summary,
			Request: request, Response: response, Status: status, Problems: problems,
		}, Handle: handle}
	}
	hours := get(one+"/lines/{n}/usage", "lineUsage", "What a line adds up", reflect.TypeFor[client.LineUsage](), lineUsagePaging, s.invoiceLineUsage)
	hours.Problems = archived
	pay := post(one+"/pay", "payInvoice", "Note that an invoice was paid", reflect.TypeFor[client.PayRequest](), invoice, serve.OK200, once, s.payInvoice)
	pay.IDHeader = request.IdempotencyHeader
	return []serve.Route{
		get(ofCustomer+"/invoices", "customerInvoices", "List a customer's invoices", page, request.Paging, s.customerInvoices),
		get(ofCustomer+"/invoices/upcoming", "upcomingInvoice", "What the running period will cost", invoice, []apidoc.Param{projectionParam}, s.upcomingInvoice),
		get("/v1/invoices", "listInvoices", "List invoices", page, invoiceParams, s.listInvoices),
		get(one, "getInvoice", "Get an invoice", invoice, nil, s.getInvoice),
		hours,
		post(one+"/finalize", "finalizeInvoice", "Finalize a draft", nil, invoice, serve.OK200, missing, s.finalizeInvoice),
		pay,
		post(one+"/payments/{n}/reverse", "reversePayment", "Reverse a payment", reflect.TypeFor[client.ReverseRequest](), invoice, serve.OK200, once,
			s.reversePayment),
		post(one+"/apply-credits", "applyCredits", "Pay an invoice by credits", nil, invoice, serve.OK200, missing, s.applyCredits),
		post(one+"/void", "voidInvoice", "Take an invoice back that no payment paid", reflect.TypeFor[client.VoidRequest](), invoice, serve.OK200, archived,
			s.voidInvoice),
		post(one+"/credit-notes", "creditInvoice", "Credit lines of an invoice", reflect.TypeFor[client.NoteRequest](), invoice, serve.Put200or201, once,
			s.creditInvoice),
		post(ofCustomer+"/charges", "charge", "Charge a customer once", reflect.TypeFor[client.ChargeRequest](), reflect.TypeFor[client.Charge](),
			serve.Put200or201, once, s.charge),
		post(ofCustomer+"/credits", "grantCredit", "Grant a credit", reflect.TypeFor[client.CreditRequest](), reflect.TypeFor[client.Granted](),
			serve.Put200or201, once, s.grantCredit),
		post(ofCustomer+"/credits/{id}/withdraw", "withdrawCredit", "Withdraw a credit", reflect.TypeFor[client.WithdrawRequest](),
			reflect.TypeFor[client.Withdrawn](), serve.OK200, once, s.withdrawCredit),
		get(ofCustomer+"/credits", "listCredits", "A customer's credits", reflect.TypeFor[client.Credits](), creditsPaging, s.listCredits),
	}
}
