package admin

import (
	"fmt"
	"unicode/utf8"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

type customerRequest client.CustomerRequest

func showCustomer(c *plans.Customer) client.Customer {
	body := client.Customer{
		Key: c.Key, Name: c.Name, Plan: c.Plan, PlanVersion: c.PlanVersion, EffectiveVersion: c.EffectiveVersion,
		Timezone: c.Timezone, BillingAnchor: c.BillingAnchor, Metadata: c.Metadata, Features: c.Features, TestClock: c.TestClock, Anonymous: c.Anonymous,
		CreatedAt: c.CreatedAt, ArchivedAt: c.ArchivedAt, ErasedAt: c.ErasedAt, Suspension: (*client.Suspension)(c.Suspension),
		ScheduledChange: (*client.ScheduledChange)(c.Scheduled),
	}
	if body.Metadata == nil {
		body.Metadata = map[string]string{}
	}
	return body
}

// Check returns the faults of the body by itself.
func (in *customerRequest) Check() (bad model.FieldErrors) {
	if in.Change != "" && in.Change != plans.ChangeNow && in.Change != plans.ChangeLimitsNow {
		bad = append(bad, model.FieldError{Field: "change", Detail: `must be "now" or "limits_now", or left out where neither plan costs anything`})
	}
	if in.BillingAnchor != nil && *in.BillingAnchor == "" {
		bad = append(bad, model.FieldError{
			Field:  "billing_anchor",
			Detail: "must be a wall clock such as 2026-01-31T00:00:00: left out, it stays as it is, or is the instant of creation",
		})
	}
	return bad
}

func (s *Room) putCustomer(c *serve.Call, in customerRequest) (is *plans.Customer, isNew bool, err error) {
	anchor := ""
	if in.BillingAnchor != nil {
		anchor = *in.BillingAnchor
	}
	return s.Store.PutCustomer(c.Ctx(), c.Key, plans.CustomerInput{
		Name: in.Name, Plan: in.Plan, PlanVersion: in.PlanVersion, Timezone: in.Timezone,
		BillingAnchor: anchor, Metadata: in.Metadata, Features: in.Features, TestClock: in.TestClock,
		Change: in.Change,
	}, c.If)
}

func (s *Room) getCustomer(c *serve.Call) (*plans.Customer, error) {
	return s.Store.GetCustomer(c.Ctx(), c.Key)
}

// maxSearch is the maximum length of a search in characters. It equals the maximum length of a name.
const maxSearch = 200

func (s *Room) listCustomers(c *serve.Call) (*plans.List[*plans.Customer], error) {
	prefix, search := c.Query["prefix"], c.Query["search"]
	switch {
	case prefix != "" && !plans.ValidCustomerKey(prefix):
		return nil, problem.Invalid("prefix", "must be the beginning of a key: at most 200 bytes of printable ASCII without \"/\"")
	case search == "":
		return s.Store.ListCustomers(c.Ctx(), prefix, c.Query.Page())
	case prefix != "":
		return nil, problem.Invalid("search", "finds keys by their beginning, too: leave prefix out")
	case !plans.PlainText(search) || utf8.RuneCountInString(search) > maxSearch:
		return nil, problem.Invalid("search", fmt.Sprintf("must be valid UTF-8 of at most %d characters, without control characters", maxSearch))
	}
	return s.Store.FindCustomers(c.Ctx(), search, c.Query.Page())
}

// archiveCustomer archives a customer. It returns the customer if the request also erases personal data.
func (s *Room) archiveCustomer(c *serve.Call) (*plans.Customer, error) {
	if c.Flag("erase") {
		return s.Store.EraseCustomer(c.Ctx(), c.Key)
	}
	return nil, s.Store.ArchiveCustomer(c.Ctx(), c.Key)
}

func (s *Room) putSuspension(c *serve.Call, in client.SuspensionRequest) (client.Suspension, error) {
	is, err := s.Store.Suspend(c.Ctx(), c.Key, in.Reason)
	return client.Suspension(is), err
}

func (s *Room) deleteSuspension(c *serve.Call) error { return s.Store.Resume(c.Ctx(), c.Key) }

func (s *Room) customerRoutes() []serve.Route {
	const customers, one, suspension = "/v1/customers", "/v1/customers/{key}", "/v1/customers/{key}/suspension"
	return serve.Tagged("Customers",
		serve.Put(apidoc.AdminOnly, one, "customers.put", "Write a customer", s.putCustomer, showCustomer).
			Defaults(customerRequest{Timezone: "UTC"}).Fails(problem.KindConflict).Fails(serve.Preconditions...),
		serve.Get(apidoc.Readers, one, "customers.get", "Get a customer", s.getCustomer, showCustomer).Fails(problem.KindNotFound),
		serve.List(apidoc.Readers, customers, "customers.list", "List the customers", s.listCustomers, showCustomer).Takes(
			apidoc.Param{Name: "prefix", Type: "string", Doc: "What the keys begin with."},
			apidoc.Param{Name: "search", Type: "string", Doc: "What the key begins with, or words of the name, in any case."},
		),
		serve.DeleteShown(apidoc.AdminOnly, one, "customers.archive", "Archive a customer", s.archiveCustomer, showCustomer).Takes(
			apidoc.Param{Name: "erase", Type: "boolean", Doc: "`true` also removes what identifies a person. There is no way back."},
		).Fails(problem.KindNotFound),
		serve.Replace(apidoc.AdminOnly, suspension, "customers.suspend", "Suspend a customer", s.putSuspension, serve.Same).Fails(refused...),
		serve.Delete(apidoc.AdminOnly, suspension, "customers.resume", "End a suspension", s.deleteSuspension).Fails(refused...),
	)
}
