package admin

import (
	"fmt"
	"net/http"
	"reflect"
	"unicode/utf8"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
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

func (in *customerRequest) check() (bad model.FieldErrors) {
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

func (s *Room) putCustomer(c *serve.Call) (serve.Answer, error) {
	key, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	in := customerRequest{Timezone: "UTC"}
	if err := request.DecodeBy(request.CustomerMembers, c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	if bad := in.check(); len(bad) > 0 {
		return serve.Answer{}, problem.InvalidFields(bad)
	}
	pre, err := request.Precondition(c.R.Header)
	if err != nil {
		return serve.Answer{}, err
	}
	anchor := ""
	if in.BillingAnchor != nil {
		anchor = *in.BillingAnchor
	}
	customer, isNew, err := s.Store.PutCustomer(c.Ctx(), key, plans.CustomerInput{
		Name: in.Name, Plan: in.Plan, PlanVersion: in.PlanVersion, Timezone: in.Timezone,
		BillingAnchor: anchor, Metadata: in.Metadata, Features: in.Features, TestClock: in.TestClock,
		Change: in.Change,
	}, pre)
	if err != nil {
		return serve.Answer{}, err
	}
	return customerAnswer(serve.PutStatus(isNew), customer), nil
}

func customerAnswer(status int, c *plans.Customer) serve.Answer {
	return serve.Answer{Status: status, ETag: c.ETag(), Body: showCustomer(c)}
}

func (s *Room) getCustomer(c *serve.Call) (serve.Answer, error) {
	key, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	customer, err := s.Store.GetCustomer(c.Ctx(), key)
	if err != nil {
		return serve.Answer{}, err
	}
	return customerAnswer(http.StatusOK, customer), nil
}

// maxSearch is the length of the longest search, in characters: that of a name.
const maxSearch = 200

func (s *Room) listCustomers(c *serve.Call) (serve.Answer, error) {
	prefix := c.Query["prefix"]
	if prefix != "" && !plans.ValidCustomerKey(prefix) {
		return serve.Answer{}, problem.Invalid("prefix", "must be the beginning of a key: at most 200 bytes of printable ASCII without \"/\"")
	}
	search := c.Query["search"]
	switch {
	case search == "":
		list, err := s.Store.ListCustomers(c.Ctx(), prefix, c.Query.Page())
		return serve.ListAnswer(list, err, showCustomer)
	case prefix != "":
		return serve.Answer{}, problem.Invalid("search", "finds keys by their beginning, too: leave prefix out")
	case !plans.PlainText(search) || utf8.RuneCountInString(search) > maxSearch:
		return serve.Answer{}, problem.Invalid("search", fmt.Sprintf("must be valid UTF-8 of at most %d characters, without control characters", maxSearch))
	}
	list, err := s.Store.FindCustomers(c.Ctx(), search, c.Query.Page())
	return serve.ListAnswer(list, err, showCustomer)
}

func (s *Room) archiveCustomer(c *serve.Call) (serve.Answer, error) {
	key, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	erase, err := c.Query.Flag("erase")
	if err != nil {
		return serve.Answer{}, err
	}
	if !erase {
		return serve.Answer{Status: http.StatusNoContent}, s.Store.ArchiveCustomer(c.Ctx(), key)
	}
	customer, err := s.Store.EraseCustomer(c.Ctx(), key)
	if err != nil {
		return serve.Answer{}, err
	}
	return customerAnswer(http.StatusOK, customer), nil
}

func (s *Room) putSuspension(c *serve.Call) (serve.Answer, error) {
	key, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	var in client.SuspensionRequest
	if err := request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	is, err := s.Store.Suspend(c.Ctx(), key, in.Reason)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusOK, Body: client.Suspension(is)}, nil
}

func (s *Room) deleteSuspension(c *serve.Call) (serve.Answer, error) {
	key, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusNoContent}, s.Store.Resume(c.Ctx(), key)
}

func (s *Room) customerRoutes() []serve.Route {
	missing := []*problem.Kind{problem.KindNotFound}
	customer := reflect.TypeFor[client.Customer]()
	const suspension = "/v1/customers/{key}/suspension"
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: "/v1/customers/{key}", Access: apidoc.AdminOnly, Tag: "Customers", ID: "putCustomer", Summary: "Write a customer",
			Request: reflect.TypeFor[client.CustomerRequest](), Response: customer, Status: serve.Put200or201,
			Problems: append([]*problem.Kind{problem.KindConflict}, serve.Preconditions...),
		}, Handle: s.putCustomer},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers/{key}", Access: apidoc.Readers, Tag: "Customers", ID: "getCustomer", Summary: "Get a customer",
			Response: customer, Status: serve.OK200, Problems: missing,
		}, Handle: s.getCustomer},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/customers", Access: apidoc.Readers, Tag: "Customers", ID: "listCustomers", Summary: "List the customers",
			Params: append([]apidoc.Param{
				{Name: "prefix", Type: "string", Doc: "What the keys begin with."},
				{Name: "search", Type: "string", Doc: "What the key begins with, or words of the name, in any case."},
			}, request.Paging...), Response: reflect.TypeFor[client.List[client.Customer]](), Status: serve.OK200,
		}, Handle: s.listCustomers},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: "/v1/customers/{key}", Access: apidoc.AdminOnly, Tag: "Customers", ID: "archiveCustomer", Summary: "Archive a customer",
			Params:   []apidoc.Param{{Name: "erase", Type: "boolean", Doc: "`true` also removes what identifies a person. There is no way back."}},
			Response: customer, Status: []int{http.StatusOK, http.StatusNoContent}, Problems: missing,
		}, Handle: s.archiveCustomer},
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: suspension, Access: apidoc.AdminOnly, Tag: "Customers", ID: "suspendCustomer", Summary: "Suspend a customer",
			Request: reflect.TypeFor[client.SuspensionRequest](), Response: reflect.TypeFor[client.Suspension](), Status: serve.OK200,
			Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, Handle: s.putSuspension},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: suspension, Access: apidoc.AdminOnly, Tag: "Customers", ID: "resumeCustomer", Summary: "End a suspension",
			Status: serve.Done204, Problems: []*problem.Kind{problem.KindNotFound, problem.KindConflict},
		}, Handle: s.deleteSuspension},
	}
}
