package billing

import (
	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
)

// instantOrPeriodEnd is an instant, "period_end" or "base_end".
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

func showAccount(a *accounts.Account) client.Account {
	return client.Account{
		StartsAt: respond.Time(a.StartsAt), TrialEndsAt: respond.InstantOrNull(a.TrialEndsAt), EndsAt: respond.InstantOrNull(a.EndsAt),
		AfterEnd: a.AfterEnd, Seller: a.Seller,
		Buyer: a.Buyer, Taxes: a.Taxes, DueDays: a.DueDays, Currency: a.Currency,
		BilledUntil: respond.InstantOrNull(a.BilledUntil), TestClock: a.Clock,
		OrderReference: a.OrderReference, Notes: a.Notes, Warnings: ofAccount(&a.Account),
	}
}

func (s *Room) getBilling(c *serve.Call) (*accounts.Account, error) {
	return s.Accounts.Account(c.Ctx(), c.Key)
}

func (s *Room) putBilling(c *serve.Call, in billingRequest) (*accounts.Account, error) {
	return s.Accounts.PutAccount(c.Ctx(), c.Key, &accounts.AccountInput{
		StartsAt: in.StartsAt.Micros(), TrialEndsAt: in.TrialEndsAt.Micros(), EndsAt: in.EndsAt.Micros(), PeriodEnd: in.EndsAt.periodEnd,
		BaseEnd: in.EndsAt.baseEnd, AfterEnd: in.AfterEnd,
		Seller: in.Seller, Buyer: billing.Buyer(in.Buyer), Taxes: in.Taxes, DueDays: in.DueDays,
		OrderReference: in.OrderReference, Notes: in.Notes,
	}, c.If)
}

func (s *Room) accountRoutes() []serve.Route {
	const account = "/v1/customers/{key}/billing"
	return serve.Tagged("Billing",
		serve.Replace(apidoc.AdminOnly, account, "billing.put", "Say how a customer is billed", s.putBilling, showAccount).
			Defaults(billingRequest{Seller: "default", DueDays: 14}).Fails(archived...).Fails(serve.Preconditions...),
		serve.Get(apidoc.Readers, account, "billing.get", "How a customer is billed", s.getBilling, showAccount).Fails(refused...),
	)
}
