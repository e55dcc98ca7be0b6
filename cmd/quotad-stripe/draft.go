package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"

	"quotad/client"
)

// maxNumber is the maximum length of an invoice number at Stripe.
const maxNumber = 26

// draft creates the draft of an invoice at Stripe, without line items. The caller uses it if find has found no
// invoice.
func (b *bridge) draft(ctx context.Context, q *client.Invoice, c *customer, j *job) (*stripe.Invoice, error) {
	m, err := moneyOf(q.Currency)
	if err != nil {
		return nil, err
	}
	if _, ok := m.stripe(q.OpenMinor); !ok {
		return nil, person("amount", "", "of invoice %s %d %s are open, in minor units, and Stripe cannot write that amount: collect this invoice by hand",
			number(q), q.OpenMinor, q.Currency)
	}
	at, err := b.customerFor(ctx, q, c)
	if err != nil {
		return nil, err
	}
	params := &stripe.InvoiceCreateParams{
		Customer: stripe.String(at), Currency: stripe.String(strings.ToLower(q.Currency)),
		AutoAdvance:                 stripe.Bool(false), // Stripe would finalize a draft without items after an hour
		AutomaticTax:                &stripe.InvoiceCreateAutomaticTaxParams{Enabled: stripe.Bool(false)},
		CollectionMethod:            stripe.String(b.Collection),
		Discounts:                   []*stripe.InvoiceCreateDiscountParams{}, // no discounts, even if the customer has one
		PendingInvoiceItemsBehavior: stripe.String("exclude"),
		Metadata:                    map[string]string{metaInvoice: *q.ID, metaNumber: number(q)},
	}
	if b.Collection == string(stripe.InvoiceCollectionMethodSendInvoice) {
		if q.DueAt != nil && q.DueAt.After(time.Now()) {
			params.DueDate = stripe.Int64(q.DueAt.Unix())
		} else {
			params.DaysUntilDue = stripe.Int64(0)
		}
	}
	field := func(name, value string) {
		if value != "" {
			params.CustomFields = append(params.CustomFields, &stripe.InvoiceCreateCustomFieldParams{
				Name: stripe.String(name), Value: stripe.String(short(value, 140)),
			})
		}
	}
	if b.Numbers == "quotad" && len(number(q)) <= maxNumber {
		params.Number = stripe.String(number(q))
	} else {
		field("Number", number(q))
	}
	field("Order reference", q.OrderReference)
	field("Tax id", q.Buyer.TaxID)
	params.IdempotencyKey = key(q, j, "invoice", "")
	s, err := b.stripe.V1Invoices.Create(ctx, params)
	if err != nil {
		if missing(err) { // somebody has deleted the customer at Stripe
			b.store.change(func(s *state) { delete(s.Customers, q.Customer) })
		}
		return nil, err
	}
	b.remember(*q.ID, s.ID)
	return s, nil
}

// finish adds the missing line items to a draft at Stripe. If the draft's total then equals the open amount in
// quotad, finish finalizes the draft. If no amount is open any more, finish deletes the draft and returns nil.
func (b *bridge) finish(ctx context.Context, q *client.Invoice, s *stripe.Invoice, j *job) (*stripe.Invoice, error) {
	if q.Status != statusFinalized || q.OpenMinor == 0 {
		if _, err := b.stripe.V1Invoices.Delete(ctx, s.ID, nil); err != nil && !missing(err) {
			return nil, err
		}
		b.forget(*q.ID)
		return nil, nil //nolint:nilnil // nil means that the draft is deleted
	}
	m, err := moneyOf(q.Currency)
	if err != nil {
		return nil, err
	}
	there, err := b.itemsAt(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	if s, err = b.add(ctx, q, s, there, m, j); err != nil {
		return nil, err
	}
	open, _ := m.stripe(q.OpenMinor)
	if s.Total != open {
		return nil, person("total", s.ID,
			"the draft of invoice %s comes to %d at Stripe, and %d are open in quotad, in Stripe's minor units: somebody has changed the draft. It was not finalized. Delete it there: the bridge then makes it again", number(q), s.Total, open)
	}
	params := &stripe.InvoiceFinalizeInvoiceParams{AutoAdvance: stripe.Bool(true)}
	params.IdempotencyKey = key(q, j, "finalize", s.ID)
	if s, err = b.stripe.V1Invoices.FinalizeInvoice(ctx, s.ID, params); err != nil {
		return nil, err
	}
	b.made.Add(1)
	b.log.Info("an invoice was made at Stripe", "invoice", *q.ID, "number", number(q), "stripe", s.ID, "amount", s.Total, "currency", q.Currency)
	return s, nil
}

// itemsAt returns the amounts of a draft's line items by their keys, in Stripe's minor units.
func (b *bridge) itemsAt(ctx context.Context, id string) (map[string]int64, error) {
	params := &stripe.InvoiceListLinesParams{Invoice: stripe.String(id)}
	params.Limit = stripe.Int64(100)
	there := map[string]int64{}
	for line, err := range b.stripe.V1Invoices.ListLines(ctx, params).All(ctx) {
		if err != nil {
			return nil, err
		}
		there[line.Metadata[metaItem]] = line.Amount
	}
	return there, nil
}

// add adds the missing line items to a draft. The amount that was paid or credited since the invoice was
// finalized is one more item. If the draft already has such items, the new item contains only the difference.
func (b *bridge) add(ctx context.Context, q *client.Invoice, s *stripe.Invoice, there map[string]int64, m money, j *job) (*stripe.Invoice, error) {
	settled, before := q.AmountDueMinor-q.OpenMinor, 0
	for name, amount := range there {
		if strings.HasPrefix(name, settledKey) {
			before++
			minor, _ := m.quotad(amount)
			settled += minor
		}
	}
	items := itemsOf(q)
	if settled != 0 {
		items = append(items, item{key: fmt.Sprintf("%s%d", settledKey, before+1), text: "Paid or credited already", minor: -settled})
	}
	params := &stripe.InvoiceAddLinesParams{}
	for _, i := range items {
		if _, ok := there[i.key]; ok {
			continue
		}
		amount, ok := m.stripe(i.minor)
		if !ok {
			return nil, person("amount", s.ID,
				"an item of invoice %s is %d %s, in minor units, and Stripe cannot write that amount: collect this invoice by hand", number(q), i.minor, q.Currency)
		}
		line := &stripe.InvoiceAddLinesLineParams{
			Amount: stripe.Int64(amount), Description: stripe.String(i.text), Discountable: stripe.Bool(false),
			Metadata: map[string]string{metaItem: i.key},
		}
		if i.to > 0 {
			line.Period = &stripe.InvoiceAddLinesLinePeriodParams{Start: stripe.Int64(i.from), End: stripe.Int64(max(i.from, i.to))}
		}
		params.Lines = append(params.Lines, line)
	}
	if len(params.Lines) == 0 {
		return b.stripe.V1Invoices.Retrieve(ctx, s.ID, nil) // s may be older than its items
	}
	params.IdempotencyKey = key(q, j, fmt.Sprintf("items-%d", len(there)), s.ID)
	return b.stripe.V1Invoices.AddLines(ctx, s.ID, params)
}
