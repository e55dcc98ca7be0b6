package billing

import (
	"slices"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/billing"
	"quotad/internal/plans"
)

var invoiceFilter = []apidoc.Param{
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
}

var invoiceParams = slices.Concat(invoiceFilter, request.Paging)

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

// invoiceRoutes returns the routes of invoices, charges and credits.
func (s *Room) invoiceRoutes() []serve.Route {
	const ofCustomer, one = "/v1/customers/{key}", "/v1/invoices/{id}"
	once := append([]*problem.Kind{problem.KindIDReused}, refused...)
	admins, readers := apidoc.AdminOnly, apidoc.Readers
	return serve.Tagged("Billing",
		serve.List(readers, ofCustomer+"/invoices", "invoices.listForCustomer", "List a customer's invoices", s.customerInvoices, showInvoice).Fails(refused...),
		serve.Get(readers, ofCustomer+"/invoices/upcoming", "invoices.upcoming", "What the running period will cost", s.upcomingInvoice, serve.Same).
			Takes(projectionParam).Fails(refused...),
		serve.List(readers, "/v1/invoices", "invoices.list", "List invoices", s.listInvoices, showInvoice).Takes(invoiceFilter...).Fails(refused...),
		serve.Get(readers, one, "invoices.get", "Get an invoice", s.getInvoice, showInvoice).Fails(refused...),
		serve.Get(readers, one+"/lines/{n}/usage", "invoices.lineUsage", "What a line adds up", s.lineUsage, showLineUsage).
			Takes(lineUsagePaging...).Fails(archived...),
		serve.Trigger(admins, one+"/finalize", "invoices.finalize", "Finalize a draft", s.finalizeInvoice, showInvoice).Fails(refused...),
		serve.Act(admins, one+"/pay", "invoices.pay", "Note that an invoice was paid", s.payInvoice, showInvoice).Keyed().Fails(once...),
		serve.Act(admins, one+"/payments/{n}/reverse", "invoices.reversePayment", "Reverse a payment", s.reversePayment, showInvoice).Fails(once...),
		serve.Trigger(admins, one+"/apply-credits", "invoices.applyCredits", "Pay an invoice by credits", s.applyCredits, showInvoice).Fails(refused...),
		serve.Act(admins, one+"/void", "invoices.void", "Take an invoice back that no payment paid", s.voidInvoice, showInvoice).Fails(archived...),
		serve.Post(admins, one+"/credit-notes", "invoices.createCreditNote", "Credit lines of an invoice", s.creditInvoice, showInvoice).Fails(once...),
		serve.Post(admins, ofCustomer+"/charges", "charges.create", "Charge a customer once", s.charge, serve.Same).Fails(once...),
		serve.Post(admins, ofCustomer+"/credits", "credits.grant", "Grant a credit", s.grantCredit, serve.Same).
			Defaults(client.CreditRequest{Kind: billing.CreditPromotional, Priority: 50}).Fails(once...),
		serve.Act(admins, ofCustomer+"/credits/{id}/withdraw", "credits.withdraw", "Withdraw a credit", s.withdrawCredit, serve.Same).Fails(once...),
		serve.Get(readers, ofCustomer+"/credits", "credits.list", "A customer's credits", s.listCredits, serve.Same).Takes(creditsPaging...).Fails(refused...),
	)
}
