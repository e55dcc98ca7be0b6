package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/stripe/stripe-go/v85"

	"quotad/client"
)

// Metadata keys of the objects that the bridge creates at Stripe. The bridge uses them to find the objects
// again.
const (
	metaInvoice  = "quotad_invoice"  // of invoices and credit notes: the id of quotad's invoice
	metaNumber   = "quotad_number"   // of invoices: the number of quotad's invoice
	metaCustomer = "quotad_customer" // of customers: quotad's key. The operator sets it on existing customers
	metaMade     = "quotad_made"     // of customers that the bridge created and may rename
	metaItem     = "quotad_item"     // of line items: the key of the item
	metaSettled  = "quotad_settled"  // of invoices: outside, if they were paid outside of Stripe
)

const outside = "outside"

// daySeconds is the tolerance for different clocks: an invoice at Stripe may seem this much older than its
// finalization in quotad.
const daySeconds = 24 * 60 * 60

// find returns the invoice at Stripe that belongs to q. If there is no such invoice, find returns q's customer
// at Stripe, or nil if that customer does not exist either. Stripe's lists show every write at once. Stripe's
// search is up to a minute late, so find uses it only for customers.
func (b *bridge) find(ctx context.Context, q *client.Invoice) (*stripe.Invoice, *customer, error) {
	id := *q.ID
	var known string
	b.store.read(func(s *state) { known = s.Open[id] })
	if known != "" {
		s, err := b.stripe.V1Invoices.Retrieve(ctx, known, nil)
		switch {
		case err == nil && !s.Deleted && s.Metadata[metaInvoice] == id:
			return s, nil, nil
		case err != nil && !missing(err):
			return nil, nil, err
		}
		b.store.change(func(s *state) { delete(s.Open, id) })
	}
	c, err := b.findCustomer(ctx, q.Customer)
	if err != nil || c == nil {
		return nil, nil, err
	}
	params := &stripe.InvoiceListParams{Customer: stripe.String(c.ID)}
	params.Limit = stripe.Int64(100)
	if q.TestClock == "" && q.FinalizedAt != nil {
		params.CreatedRange = &stripe.RangeQueryParams{GreaterThanOrEqual: q.FinalizedAt.Unix() - daySeconds}
	}
	found, err := b.among(ctx, q, params)
	if err != nil || found == nil {
		return nil, c, err
	}
	b.remember(id, found.ID)
	return found, c, nil
}

// among returns the invoice that belongs to q from a list of Stripe's invoices, or nil. If there are several, it
// prefers a paid invoice, and returns a void invoice only if there is no other.
func (b *bridge) among(ctx context.Context, q *client.Invoice, list *stripe.InvoiceListParams) (found *stripe.Invoice, err error) {
	for s, err := range b.stripe.V1Invoices.List(ctx, list).All(ctx) {
		if err != nil {
			return nil, err
		}
		if s.Metadata[metaInvoice] != *q.ID {
			continue
		}
		if found != nil && found.Status != stripe.InvoiceStatusVoid && s.Status != stripe.InvoiceStatusVoid {
			b.tell(notice{
				ID: "several " + *q.ID, Invoice: *q.ID, Stripe: s.ID,
				Text: fmt.Sprintf("Stripe has two invoices of invoice %s, %s and %s: void one of them", number(q), found.ID, s.ID),
			})
		}
		if found == nil || found.Status == stripe.InvoiceStatusVoid || s.Status == stripe.InvoiceStatusPaid {
			found = s
		}
	}
	return found, nil
}

func (b *bridge) remember(id, at string) { b.store.change(func(s *state) { s.Open[id] = at }) }
func (b *bridge) forget(id string)       { b.store.change(func(s *state) { delete(s.Open, id) }) }

// findCustomer returns the customer at Stripe whose metadata contains quotad's key, or nil.
func (b *bridge) findCustomer(ctx context.Context, key string) (c *customer, err error) {
	b.store.read(func(s *state) {
		if known := s.Customers[key]; known != nil {
			copied := *known
			c = &copied
		}
	})
	if c != nil {
		return c, nil
	}
	query := fmt.Sprintf("metadata['%s']:'%s'", metaCustomer, strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(key))
	params := &stripe.CustomerSearchParams{SearchParams: stripe.SearchParams{Query: query}}
	var found *stripe.Customer
	for one, err := range b.stripe.V1Customers.Search(ctx, params).All(ctx) {
		if err != nil {
			return nil, err
		}
		if one.Deleted || one.Metadata[metaCustomer] != key {
			continue
		}
		// If several customers match, the oldest is used, so that each search finds the same customer.
		if found == nil || one.Created < found.Created || one.Created == found.Created && one.ID < found.ID {
			found = one
		}
	}
	if found == nil {
		return nil, nil //nolint:nilnil // nil means that there is no such customer
	}
	return b.keepCustomer(key, found), nil
}

func (b *bridge) keepCustomer(key string, at *stripe.Customer) *customer {
	c := &customer{ID: at.ID, Made: at.Metadata[metaMade] != ""}
	b.store.change(func(s *state) { s.Customers[key] = c })
	copied := *c
	return &copied
}

// erasedKey is the prefix of the keys that quotad assigns to erased customers.
const erasedKey = "erased:"

// customerFor returns the id of the customer to be billed at Stripe, and creates the customer if necessary. The
// create request is the same for all invoices of a customer. Therefore its idempotency key prevents a second
// customer for a day, and after that the search finds the customer.
//
// c is the customer that find returned.
func (b *bridge) customerFor(ctx context.Context, q *client.Invoice, c *customer) (string, error) {
	if c == nil && strings.HasPrefix(q.Customer, erasedKey) {
		return "", person("erased", "",
			"the customer of invoice %s was erased, and the bridge does not know who it was at Stripe: collect this invoice by hand", number(q))
	}
	if c == nil {
		params := &stripe.CustomerCreateParams{Metadata: map[string]string{metaCustomer: q.Customer, metaMade: "bridge"}}
		params.IdempotencyKey = stripe.String("quotad-customer-" + hash(q.Customer))
		made, err := b.stripe.V1Customers.Create(ctx, params)
		if err != nil {
			return "", err
		}
		c = b.keepCustomer(q.Customer, made)
	}
	return c.ID, b.name(ctx, q, c)
}

// name updates the name and address of a customer at Stripe if the bridge created the customer.
func (b *bridge) name(ctx context.Context, q *client.Invoice, c *customer) error {
	buyer := hash(strings.Join(append([]string{q.Buyer.Name, q.Buyer.Country}, q.Buyer.Address...), "\x00"))
	if !c.Made || c.Buyer == buyer {
		return nil
	}
	address := &stripe.AddressParams{Country: stripe.String(q.Buyer.Country)}
	if lines := q.Buyer.Address; len(lines) > 0 {
		address.Line1 = stripe.String(short(lines[0], maxText))
		address.Line2 = stripe.String(short(strings.Join(lines[1:], ", "), maxText))
	}
	_, err := b.stripe.V1Customers.Update(ctx, c.ID, &stripe.CustomerUpdateParams{
		Name: stripe.String(short(q.Buyer.Name, 256)), Address: address,
	})
	if err != nil {
		return err
	}
	b.store.change(func(s *state) {
		if kept := s.Customers[q.Customer]; kept != nil {
			kept.Buyer = buyer
		}
	})
	return nil
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
