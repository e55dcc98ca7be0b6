package client

import "context"

// CapRequest is the body of PUT /v1/customers/{key}/caps/{meter}.
type CapRequest struct {
	AmountMinor int64 `json:"amount_minor" minimum:"0" maximum:"999999999999999" doc:"The most that the meter may cost in a billing period, in minor units of the customer's currency."`
}

// Cap is the maximum cost of a meter for a customer in one billing period.
type Cap struct {
	Meter       string  `json:"meter" doc:"The meter's key."`
	AmountMinor int64   `json:"amount_minor" doc:"The most that the meter may cost in a billing period, in minor units."`
	Units       *int64  `json:"units" doc:"The units that the amount covers, by the prices of the open period. Null if there is no such number."`
	Reason      *string `json:"reason" enum:"no-bound,no-period" doc:"Why units is null: no-bound if no number of units costs more, no-period if no billing period is open. Else null."`
}

// PutCap sets the maximum cost of a meter for a customer in one billing period.
func (c *Client) PutCap(ctx context.Context, customer, meter string, in *CapRequest) (Cap, error) {
	return put[Cap](ctx, c, at("customers", customer, "caps", meter), in)
}

// Caps lists a customer's caps.
func (c *Client) Caps(ctx context.Context, customer string) (List[Cap], error) {
	return get[List[Cap]](ctx, c, at("customers", customer, "caps"))
}

// DeleteCap removes a cap.
func (c *Client) DeleteCap(ctx context.Context, customer, meter string) error {
	return c.remove(ctx, at("customers", customer, "caps", meter))
}
