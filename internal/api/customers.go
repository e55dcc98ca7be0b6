package api

import (
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"quotad/internal/api/problem"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

type customerRequest struct {
	Name          string            `json:"name" maxLength:"200"`
	Plan          string            `json:"plan" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The plan's key."`
	PlanVersion   *int              `json:"plan_version,omitempty" minimum:"1" doc:"Pins the customer to this version. When left out, the customer follows the plan."`
	Timezone      string            `json:"timezone" required:"false" default:"UTC" doc:"IANA name, such as Europe/Berlin.\n- Another timezone counts at once for calendar windows and usage.\n- Another timezone counts for billing periods from the next one on."`
	BillingAnchor string            `json:"billing_anchor,omitempty" pattern:"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$" doc:"Billing periods are counted from here. This is wall clock in the customer's timezone.\n- When left out, a new customer has the instant of creation.\n- When left out, an existing customer keeps its anchor.\n- Another anchor or another timezone counts from the next period on."`
	Metadata      map[string]string `json:"metadata,omitempty"`
	Features      map[string]any    `json:"features,omitempty" doc:"Features that differ from those of the plan, or are beside them. Values are booleans, numbers and strings."`
	TestClock     *string           `json:"test_clock,omitempty" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"Key of the test clock that the customer is created with.\n- The customer lives by the clock ever after.\n- When left out, a new customer lives in real time.\n- When left out, an existing customer stays on its clock."`
	Change        *string           `json:"change,omitempty" enum:"now" doc:"When changes of an existing customer count.\n- Another plan's limits count at once.\n- Another plan's interval and prices, another anchor and another timezone count from the next billing period on.\n- With now, this request ends the running period, if one of these changes."`
}

type customerBody struct {
	Key              string            `json:"key"`
	Name             string            `json:"name"`
	Plan             string            `json:"plan"`
	PlanVersion      *int              `json:"plan_version" doc:"The pinned version, or null."`
	EffectiveVersion int               `json:"effective_version" doc:"The version whose limits count now."`
	Timezone         string            `json:"timezone"`
	BillingAnchor    string            `json:"billing_anchor"`
	Metadata         map[string]string `json:"metadata"`
	TestClock        *string           `json:"test_clock" doc:"Key of the test clock that the customer lives by, or null."`
	Anonymous        bool              `json:"anonymous" doc:"The customer was created by its first hit, on the default plan. An idle one is forgotten, unless it is written before."`
	Features         map[string]any    `json:"features" doc:"The customer's own features. The customer's quota shows them over those of the plan."`
	CreatedAt        time.Time         `json:"created_at"`
	ArchivedAt       *time.Time        `json:"archived_at"`
	ErasedAt         *time.Time        `json:"erased_at" doc:"When what identifies a person was removed."`
}

func showCustomer(c *plans.Customer) customerBody {
	body := customerBody{
		Key: c.Key, Name: c.Name, Plan: c.Plan, PlanVersion: c.PlanVersion, EffectiveVersion: c.EffectiveVersion,
		Timezone: c.Timezone, BillingAnchor: c.BillingAnchor, Metadata: c.Metadata, Features: c.Features, TestClock: c.TestClock, Anonymous: c.Anonymous,
		CreatedAt: c.CreatedAt, ArchivedAt: c.ArchivedAt, ErasedAt: c.ErasedAt,
	}
	if body.Metadata == nil {
		body.Metadata = map[string]string{}
	}
	return body
}

func (in *customerRequest) check() (bad model.FieldErrors) {
	if in.Change != nil && *in.Change != "now" {
		bad = append(bad, model.FieldError{Field: "change", Detail: `must be "now", or left out: then another plan's interval and prices count from the next period on`})
	}
	return bad
}

func (s *Server) putCustomer(c *call) (answer, error) {
	key, err := customerInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	in := customerRequest{Timezone: "UTC"}
	if err := decodeBy(customerMembers, c.body, &in); err != nil {
		return answer{}, err
	}
	if bad := in.check(); len(bad) > 0 {
		return answer{}, problem.InvalidFields(bad)
	}
	pre, err := precondition(c.r.Header)
	if err != nil {
		return answer{}, err
	}
	customer, isNew, err := s.store.PutCustomer(c.ctx(), key, plans.CustomerInput{
		Name: in.Name, Plan: in.Plan, PlanVersion: in.PlanVersion, Timezone: in.Timezone,
		BillingAnchor: in.BillingAnchor, Metadata: in.Metadata, Features: in.Features, TestClock: in.TestClock,
		EndPeriod: in.Change != nil,
	}, pre)
	if err != nil {
		return answer{}, err
	}
	return customerAnswer(putStatus(isNew), customer), nil
}

func customerAnswer(status int, c *plans.Customer) answer {
	return answer{status: status, etag: c.ETag(), body: showCustomer(c)}
}

func (s *Server) getCustomer(c *call) (answer, error) {
	key, err := customerInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	customer, err := s.store.GetCustomer(c.ctx(), key)
	if err != nil {
		return answer{}, err
	}
	return customerAnswer(http.StatusOK, customer), nil
}

// maxSearch is the length of the longest search, in characters: that of a name.
const maxSearch = 200

func (s *Server) listCustomers(c *call) (answer, error) {
	prefix := c.query["prefix"]
	if prefix != "" && !plans.ValidCustomerKey(prefix) {
		return answer{}, problem.Invalid("prefix", "must be the beginning of a key: at most 200 bytes of printable ASCII without \"/\"")
	}
	search := c.query["search"]
	switch {
	case search == "":
		list, err := s.store.ListCustomers(c.ctx(), prefix, c.query.page())
		return listAnswer(list, err, showCustomer)
	case prefix != "":
		return answer{}, problem.Invalid("search", "finds keys by their beginning, too: leave prefix out")
	case !plans.PlainText(search) || utf8.RuneCountInString(search) > maxSearch:
		return answer{}, problem.Invalid("search", fmt.Sprintf("must be valid UTF-8 of at most %d characters, without control characters", maxSearch))
	}
	list, err := s.store.FindCustomers(c.ctx(), search, c.query.page())
	return listAnswer(list, err, showCustomer)
}

func (s *Server) archiveCustomer(c *call) (answer, error) {
	key, err := customerInPath(c.r)
	if err != nil {
		return answer{}, err
	}
	erase, err := c.query.flag("erase")
	if err != nil {
		return answer{}, err
	}
	if !erase {
		return answer{status: http.StatusNoContent}, s.store.ArchiveCustomer(c.ctx(), key)
	}
	customer, err := s.store.EraseCustomer(c.ctx(), key)
	if err != nil {
		return answer{}, err
	}
	return customerAnswer(http.StatusOK, customer), nil
}
