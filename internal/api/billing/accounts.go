package billing

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
)

// instantOrPeriodEnd is an instant, "period_end", or "base_end".
type instantOrPeriodEnd struct {
	request.Timestamp
	periodEnd, baseEnd bool
}

const periodEnd, baseEnd = `"period_end"`, `"base_end"`

// UnmarshalJSONFrom implements jsonv2's UnmarshalerFrom.
func (t *instantOrPeriodEnd) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	if t.periodEnd, t.baseEnd = string(value) == periodEnd, string(value) == baseEnd; t.periodEnd || t.baseEnd {
		return nil
	}
	if err := t.Read(value); err != nil {
		return request.Mismatch(`must be an RFC 3339 time such as "2026-01-31T12:00:00Z", "period_end", or "base_end"`)
	}
	return nil
}

// Schema implements huma.SchemaProvider.
func (instantOrPeriodEnd) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Nullable: true}
}

type billingRequest struct {
	StartsAt    request.Timestamp  `json:"starts_at,omitzero" doc:"Billing begins here. What was used before is never billed.\n- When left out, it stays as it is: at first, the second in which the customer was created.\n- It may be at most 1,000 billing periods ago.\n- It cannot be moved once a period is closed."`
	TrialEndsAt request.Timestamp  `json:"trial_ends_at,omitzero" doc:"A billing period ends here. All that end by then cost nothing. Null or left out: no trial."`
	EndsAt      instantOrPeriodEnd `json:"ends_at,omitzero" doc:"Billing ends here. after_end says what becomes of later hits.\n- An instant, or period_end for the end of the running period, or base_end for that of all the periods that its base price is for.\n- Null or left out: it does not end. Where it had ended, it begins again now."`
	AfterEnd    *string            `json:"after_end,omitempty" enum:"block,free" doc:"What becomes of hits and reservations after ends_at.\n- block: they are refused, 403 ended.\n- free: usage goes on and is free.\n- When left out, it stays as it was: at first block."`
	Seller      string             `json:"seller" required:"false" default:"default" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The key of the seller who sends the invoices."`
	Buyer       payerRequest       `json:"buyer" required:"false" doc:"The buyer to whom invoices are addressed."`
	Taxes       []billing.TaxRate  `json:"taxes" required:"false" maxItems:"10" doc:"The taxes of invoices, all inclusive or all exclusive."`
	DueDays     int                `json:"due_days" required:"false" minimum:"0" maximum:"365" default:"14" doc:"Calendar days from an invoice's finalization until it is due, at the same wall clock of the customer's timezone."`

	OrderReference string   `json:"order_reference,omitempty" maxLength:"200" doc:"The buyer's order reference, printed on invoices."`
	Notes          []string `json:"notes" required:"false" maxItems:"20" doc:"Lines that are printed on each invoice of the customer."`
}

type payerRequest struct {
	Name    string   `json:"name" required:"false" maxLength:"200" doc:"The buyer's name."`
	Address []string `json:"address" required:"false" maxItems:"20" doc:"The lines of the address."`
	Country string   `json:"country" required:"false" maxLength:"200" doc:"The country. A code of ISO 3166, such as DE, is printed by its name."`
	TaxID   string   `json:"tax_id,omitempty" maxLength:"200" doc:"The tax number, such as DE123456789, printed on invoices."`
}

func accountAnswer(a *accounts.Account, err error) (serve.Answer, error) {
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusOK, ETag: a.ETag(), Body: client.Account{
		StartsAt: respond.Time(a.StartsAt), TrialEndsAt: respond.InstantOrNull(a.TrialEndsAt), EndsAt: respond.InstantOrNull(a.EndsAt),
		AfterEnd: a.AfterEnd, Seller: a.Seller,
		Buyer: a.Buyer, Taxes: a.Taxes, DueDays: a.DueDays, Currency: a.Currency,
		BilledUntil: respond.InstantOrNull(a.BilledUntil), TestClock: a.Clock,
		OrderReference: a.OrderReference, Notes: a.Notes, Warnings: ofAccount(&a.Account),
	}}, nil
}

func (s *Room) getBilling(c *serve.Call) (serve.Answer, error) {
	key, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	return accountAnswer(s.Accounts.Account(c.Ctx(), key))
}

func (s *Room) putBilling(c *serve.Call) (serve.Answer, error) {
	key, err := request.CustomerInPath(c.R)
	if err != nil {
		return serve.Answer{}, err
	}
	in := billingRequest{Seller: "default", DueDays: 14}
	if err := request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	pre, err := request.Precondition(c.R.Header)
	if err != nil {
		return serve.Answer{}, err
	}
	return accountAnswer(s.Accounts.PutAccount(c.Ctx(), key, &accounts.AccountInput{
		StartsAt: in.StartsAt.Micros(), TrialEndsAt: in.TrialEndsAt.Micros(), EndsAt: in.EndsAt.Micros(), PeriodEnd: in.EndsAt.periodEnd,
		BaseEnd: in.EndsAt.baseEnd, AfterEnd: in.AfterEnd,
		Seller: in.Seller, Buyer: billing.Buyer(in.Buyer), Taxes: in.Taxes, DueDays: in.DueDays,
		OrderReference: in.OrderReference, Notes: in.Notes,
	}, pre))
}

// accountRoutes are those of accounts, sellers and prices of a customer's own.
func (s *Room) accountRoutes() []serve.Route {
	const account, sellers, prices = "/v1/customers/{key}/billing", "/v1/sellers", "/v1/customers/{key}/prices"
	missing := []*problem.Kind{problem.KindNotFound}
	refused := []*problem.Kind{problem.KindNotFound, problem.KindConflict}
	shown, seller, price := reflect.TypeFor[client.Account](), reflect.TypeFor[client.Seller](), reflect.TypeFor[client.OwnPrice]()
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: account, Access: apidoc.AdminOnly, Tag: "Billing", ID: "putBilling", Summary: "Say how a customer is billed",
			Request: reflect.TypeFor[billingRequest](), Response: shown, Status: serve.OK200,
			Problems: append([]*problem.Kind{problem.KindNotFound, problem.KindConflict, problem.KindArchived}, serve.Preconditions...),
		}, Handle: s.putBilling},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: account, Access: apidoc.Readers, Tag: "Billing", ID: "getBilling", Summary: "How a customer is billed",
			Response: shown, Status: serve.OK200, Problems: refused,
		}, Handle: s.getBilling},
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: prices + "/{meter}", Access: apidoc.AdminOnly, Tag: "Billing", ID: "putOwnPrice", Summary: "Give a customer a price of its own",
			Request: reflect.TypeFor[client.OwnPriceRequest](), Response: price, Status: serve.Put200or201, Problems: refused,
		}, Handle: s.putOwnPrice},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: prices + "/{meter}", Access: apidoc.Readers, Tag: "Billing", ID: "getOwnPrice", Summary: "Get a price of a customer's own",
			Response: price, Status: serve.OK200, Problems: refused,
		}, Handle: s.getOwnPrice},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: prices + "/{meter}", Access: apidoc.AdminOnly, Tag: "Billing", ID: "deleteOwnPrice", Summary: "Go back to the plan's price",
			Status: serve.Done204, Problems: refused,
		}, Handle: s.deleteOwnPrice},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: prices, Access: apidoc.Readers, Tag: "Billing", ID: "listOwnPrices", Summary: "List the prices of a customer's own",
			Response: reflect.TypeFor[client.List[client.OwnPrice]](), Status: serve.OK200, Problems: refused,
		}, Handle: s.listOwnPrices},
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: sellers + "/{key}", Access: apidoc.AdminOnly, Tag: "Billing", ID: "putSeller", Summary: "Write a seller",
			Request: reflect.TypeFor[client.SellerRequest](), Response: seller, Status: serve.Put200or201, Problems: []*problem.Kind{problem.KindPrecondition},
		}, Handle: s.putSeller},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: sellers + "/{key}", Access: apidoc.AdminOnly, Tag: "Billing", ID: "getSeller", Summary: "Get a seller",
			Response: seller, Status: serve.OK200, Problems: missing,
		}, Handle: s.getSeller},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: sellers, Access: apidoc.AdminOnly, Tag: "Billing", ID: "listSellers", Summary: "List the sellers",
			Params: request.Paging, Response: reflect.TypeFor[client.List[client.Seller]](), Status: serve.OK200,
		}, Handle: s.listSellers},
	}
}
