package api

import "quotad/internal/testkit/oracle"

// putAccount changes how the customer is billed.
func (c *guest) putAccount() {
	y, a := c.group.year, c.Account
	switch now := c.Clock.Now; y.dice.IntN(6) {
	case 0:
		if !c.unsure() {
			a.EndsAt = nil
		}
	case 1:
		if a.EndsAt == nil || *a.EndsAt > now {
			ends := max(now, a.StartsAt) + y.between(1, 60)*yearDay + y.between(0, 1)*12345678
			a.EndsAt = &ends
			f := c.foresee(200, map[string]any{"ends_at": stamp(ends)})
			defer c.foresaw(f)
		}
	case 2:
		a.Seller, a.DueDays = one(y, "default", "north"), int(y.between(0, 60))
	case 3:
		a.AfterEnd = one(y, "block", "free")
	default:
		a.Taxes = y.taxes()
	}
	c.bill(a)
	y.done("account")
}

// bill writes the account.
func (c *guest) bill(a oracle.Account) {
	body := map[string]any{"taxes": a.Taxes, "starts_at": stamp(a.StartsAt), "seller": a.Seller, "due_days": a.DueDays}
	if a.TrialEndsAt != nil {
		body["trial_ends_at"] = stamp(*a.TrialEndsAt)
	}
	if a.EndsAt != nil {
		body["ends_at"] = stamp(*a.EndsAt)
	}
	if a.AfterEnd != c.Account.AfterEnd { // else it stays as it was
		body["after_end"] = a.AfterEnd
	}
	tag := c.group.call(200, "GET", c.path+"/billing", nil).header.Get("ETag")
	c.group.call(200, "PUT", c.path+"/billing", body, "If-Match", tag)
	c.PutAccount(a)
	c.did("account %v", body)
}

// taxes draws none, or some of one kind.
func (y *year) taxes() []oracle.TaxRate {
	taxes, inclusive := []oracle.TaxRate{}, y.chance(2)
	for range y.dice.IntN(4) {
		taxes = append(taxes, oracle.TaxRate{Name: "T" + y.id(), Percent: one(y, "19", "7", "8.875", "0.5", "5.5", "20", "33.333333"), Inclusive: inclusive})
	}
	return taxes
}

// start sets what can be set before anything is billed: where billing begins, and a trial.
func (c *guest) start() {
	y, a := c.group.year, c.Account
	switch y.dice.IntN(6) {
	case 0:
		a.StartsAt = (c.Clock.Now - y.between(1, 60*24*3600)*1e6) / 1e6 * 1e6
	case 1:
		a.StartsAt = (c.Clock.Now + y.between(1, 40*24*3600)*1e6) / 1e6 * 1e6
	}
	if y.chance(4) {
		ends := a.StartsAt + y.between(1, 50)*yearDay + y.between(0, 1)*7654321
		if ends > c.Clock.Now {
			a.TrialEndsAt = &ends
		}
	}
	a.Taxes, a.Seller = y.taxes(), one(y, "default", "north")
	c.bill(a)
}
