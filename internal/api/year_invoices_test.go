package api

import (
	"fmt"

	"quotad/internal/testkit/oracle"
)

// onInvoice does something with one of the customer's invoices.
func (c *guest) onInvoice() {
	all := c.Invoices()
	if len(all) == 0 {
		return
	}
	y := c.group.year
	i := one(y, all[max(0, len(all)-4):]...)
	if entangled := c.Entangled(); len(entangled) > 0 && y.chance(2) {
		i = one(y, entangled[max(0, len(entangled)-4):]...)
	}
	path := "/v1/invoices/" + c.ids[i]
	if c.ids[i] == "" {
		y.t.Fatalf("%s: %s is not known", c.Key, i.Name())
	}
	if y.chance(6) {
		c.lineUsage(i, path)
	}
	switch {
	case i.Kind == "credit_note":
	case i.Status == "draft" && y.chance(3):
		y.call(200, "POST", path+"/finalize", nil)
		c.Finalize(i)
		c.did("finalize %s", i.Name())
		y.done("finalize")
	case (i.Status == "finalized" || i.ByCredits()) && y.chance(3):
		c.void(i, path)
	case i.Status == "finalized" && y.chance(2):
		c.pay(i, path)
	case len(i.Standing()) > 0 && i.Status != "void" && y.chance(3):
		c.reverse(i, path)
	case i.Status == "finalized", i.Status == "paid":
		c.note(i, path)
	}
	if c.expected() != c.was {
		c.compare() // so that the node's ids of new invoices are known
	}
}

func (c *guest) void(i *oracle.Invoice, path string) {
	y := c.group.year
	reissue := y.chance(2)
	body := map[string]any{"reason": "r", "reissue": reissue}
	why := c.Referred(i, reissue)
	if why == "" && i.Money() > 0 {
		why = "a payment stands"
	}
	if why != "" {
		y.call(409, "POST", path+"/void", body)
		y.done("void refused, " + why)
		return
	}
	for _, line := range i.Paper.Lines {
		if line.Kind == "unused" {
			y.done(fmt.Sprintf("void of unused reissue=%t", reissue))
		}
	}
	y.call(200, "POST", path+"/void", body)
	c.Void(i, reissue)
	c.did("void %s reissue=%t", i.Name(), reissue)
	y.done(fmt.Sprintf("void reissue=%t", reissue))
}

// note credits some of the lines, in part or whole.
func (c *guest) note(i *oracle.Invoice, path string) {
	y := c.group.year
	asked, body, sum := []oracle.NoteLine{}, []map[string]any{}, int64(0)
	whole := y.chance(3)
	for n := 1; n <= len(i.Paper.Lines); n++ {
		most := c.Left(i, n, sum)
		if line := &i.Paper.Lines[n-1]; y.chance(4) && sum == 0 {
			body := []map[string]any{{"n": n, "amount_minor": max(0, most) + 1}}
			y.call(409, "POST", path+"/credit-notes", map[string]any{"lines": body, "reason": "r", "to": "outside", "id": y.id()})
			if most < min(line.Minor, i.Paper.Total) {
				y.done("note refused of " + line.Kind)
			}
		}
		if most <= 0 || !whole && y.chance(2) {
			continue
		}
		minor := most
		if !whole {
			minor = y.between(1, most)
		}
		sum += minor
		asked = append(asked, oracle.NoteLine{N: n, Minor: minor})
		body = append(body, map[string]any{"n": n, "amount_minor": minor})
	}
	if len(asked) == 0 {
		return
	}
	to := "outside"
	if y.chance(2) {
		to = "credits"
	}
	y.call(201, "POST", path+"/credit-notes", map[string]any{"lines": body, "reason": "r", "to": to, "id": y.id()})
	c.Note(i, asked, to == "credits")
	c.did("note on %s: %v %s", i.Name(), asked, to)
	y.done("credit note to " + to)
}

// pay pays all that is open, a part, too much, or by credits.
func (c *guest) pay(i *oracle.Invoice, path string) {
	y := c.group.year
	open := i.Open()
	switch {
	case y.chance(3):
		if c.PayByCredits(i) {
			y.call(200, "POST", path+"/apply-credits", nil)
			y.done("apply credits")
		} else {
			y.call(409, "POST", path+"/apply-credits", nil)
			y.done("no credits to apply")
		}
		c.did("apply credits to %s", i.Name())
		return
	case y.chance(6):
		y.call(409, "POST", path+"/pay", map[string]any{"amount_minor": open + 1, "id": y.id()})
		y.done("pay too much")
		return
	case y.chance(2):
		part := y.between(1, open)
		once := map[string]any{"amount_minor": part, "id": y.id()}
		for range 2 { // the second is a repeat
			y.call(200, "POST", path+"/pay", once)
		}
		c.Pay(i, part)
	default:
		y.call(200, "POST", path+"/pay", map[string]string{})
		c.Pay(i, open)
	}
	c.did("pay %s, %d of %d", i.Name(), i.Paid(), open)
	y.done("pay")
}

// reverse takes a payment back.
func (c *guest) reverse(i *oracle.Invoice, path string) {
	y := c.group.year
	n, status := one(y, i.Standing()...), 200
	if !c.Reverse(i, n) {
		status = 409
	}
	once := map[string]any{"reason": "bounced", "id": y.id()}
	for range 2 {
		y.call(status, "POST", fmt.Sprintf("%s/payments/%d/reverse", path, n), once)
	}
	c.did("reverse payment %d of %s: %d", n, i.Name(), status)
	y.done(fmt.Sprintf("reverse: %d", status))
}
