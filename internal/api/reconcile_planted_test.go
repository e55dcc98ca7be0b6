package api

// planted is a fault in what is stored, and what reconcile says of it.
type planted struct {
	name, plant string
	finds       string // the checks, in alphabetical order
	example     string // what the first one's example says
}

// plantedPrices are faults of what a line of usage, and its invoice, say of prices.
func plantedPrices(first, line string) []planted {
	return []planted{
		{
			"a line's price", `UPDATE invoice_lines SET unit_price = '0.02' WHERE invoice_id =` + first + `AND n =` + line,
			"digests_match rated_is_billed", "number:",
		},
		{
			"a tier's price", `UPDATE invoice_lines SET tiers = jsonb_set(tiers, '{0,unit_price}', '"0.003"') WHERE invoice_id =` + first + `AND meter = 'tokens'`,
			"digests_match rated_is_billed", "number:",
		},
		{
			"a minimum that was applied", `UPDATE invoice_lines SET applied = NULL WHERE invoice_id =` + first + `AND meter = 'mails'`,
			"digests_match rated_is_billed", "number:",
		},
		{
			"a line says no price any more", `UPDATE invoice_lines SET unit_price = NULL WHERE invoice_id =` + first + `AND n =` + line,
			"digests_match rated_is_billed", "says something else",
		},
	}
}

// plantedNumbers are faults of the numbers that invoices have.
var plantedNumbers = []planted{
	{
		"a number is skipped", `UPDATE invoices SET number = number + 1 WHERE number = (SELECT max(number) FROM invoices)`,
		"digests_match numbers_have_no_gap", "number:",
	},
	{
		"a seller skips a number", `UPDATE sellers SET next_number = next_number + 1`,
		"numbers_have_no_gap", "seller:default",
	},
	{
		"a seller skips a number of test clocks", `UPDATE sellers SET next_test_number = next_test_number + 1`,
		"numbers_have_no_gap", "series test",
	},
	{
		"the first number of a series is another's", `UPDATE invoices SET series = 'live' WHERE number = (SELECT max(number) FROM invoices)`,
		"numbers_have_no_gap", "in the series live",
	},
}

// plantedCopies are faults of what invoices say of the adjustments that they took, and of the queue of
// those that none took. Of the customer's first invoice, one of 7 units is in the period itself, and
// one of -30 on the next invoice.
func plantedCopies(customer, first string) []planted {
	own := ` WHERE invoice_id =` + first + `AND key = (SELECT key FROM adjustments WHERE cost = 7)`
	return []planted{
		{
			"another cost was copied", `UPDATE line_adjustments SET cost = cost + 1` + own,
			"usage_is_billed", "an adjustment of 7 units in this hour has another cost",
		},
		{
			"another instant was copied", `UPDATE line_adjustments SET at = at + 1` + own,
			"usage_is_billed", "an adjustment of 7 units in this hour has another cost",
		},
		{
			"another reason was copied", `UPDATE line_adjustments SET reason = 'other'` + own,
			"usage_is_billed", "an adjustment of 7 units in this hour has another cost",
		},
		{
			"the copy of a correction of nothing", `UPDATE line_adjustments SET reason = 'other' WHERE key = (SELECT key FROM adjustments WHERE cost = -1)`,
			"usage_is_billed", "an adjustment of -1 units in this hour has another cost",
		},
		{
			"an adjustment that an invoice took is in the queue",
			`INSERT INTO open_adjustments SELECT customer, hour, meter, key FROM line_adjustments` + own,
			"adjustments_are_claimed", "7 units in this hour is on an invoice, and in the queue",
		},
		{
			"an adjustment in the queue was never made",
			`INSERT INTO open_adjustments SELECT customer, hour, meter, gen_random_uuid() FROM line_adjustments` + own,
			"adjustments_are_claimed", "in the queue of those that are on no invoice, and was never made",
		},
		{
			// The adjustment came after all invoices, so none is late with it.
			"a row of the queue is missing",
			`INSERT INTO adjustments (shard, customer, meter, hour, cost, at, key, reason)
			SELECT shard, customer, meter, hour, 4, 1772500000000000, gen_random_uuid(), 'r' FROM adjustments WHERE cost = 7`,
			"adjustments_are_claimed", "4 units in this hour is on no invoice, and not in the queue",
		},
	}
}

// plantedLost are units that no invoice will ever have. Customer gone was archived. first is an
// invoice of another one.
func plantedLost(first string) []planted {
	gone := ` (SELECT id FROM customers WHERE key = 'gone') `
	more := `UPDATE counters SET total = total + 3 WHERE attribute = '' AND meter = (SELECT id FROM meters WHERE key = 'requests') AND customer =`
	return []planted{
		{
			"units at the end of an archived customer", more + gone + `; INSERT INTO usage (shard, customer, meter, hour, admitted)
			SELECT c.shard, c.customer, c.meter, a.archived_end, 3 FROM counters c JOIN billing_accounts a ON a.customer_id = c.customer
			WHERE c.attribute = '' AND c.customer =` + gone + `AND c.meter = (SELECT id FROM meters WHERE key = 'requests')`,
			"units_are_billed", "3 units were booked at the end of the archived customer",
		},
		{
			"a meter has no line on the invoice of its period",
			`UPDATE invoice_lines SET kind = 'charge' WHERE kind = 'usage' AND meter = 'tokens' AND invoice_id =` + first,
			"digests_match lines_are_totals rated_is_billed units_are_billed", "number:",
		},
	}
}

// plantedPayments are faults of what was paid. Of the customer's invoice next, money has paid 100 and credits
// 50. Of first, a credit note took some of what was open.
func plantedPayments(first, next string) []planted {
	of := ` WHERE invoice_id =` + next
	return []planted{
		{
			"a payment is gone, and its invoice is paid", `DELETE FROM payments` + of + `AND n = 1; UPDATE invoices SET status = 'paid' WHERE id =` + next +
				`; DELETE FROM unpaid_invoices` + of,
			"due_is_settled", "The invoice is paid, and by what is open it would be finalized",
		},
		{
			"more was paid than was due", `UPDATE payments SET amount_minor = 1000000` + of + `AND n = 1`,
			"due_is_settled", "More was paid, and taken by credit notes, than was due",
		},
		{
			"nothing is open, and the invoice is finalized", `UPDATE payments SET amount_minor = (SELECT amount_due_minor - 50 FROM invoices WHERE id =` +
				next + `)` + of + `AND n = 1`,
			"due_is_settled", "The invoice is finalized, and by what is open it would be paid",
		},
		{
			"credits paid another amount", `UPDATE payments SET amount_minor = 51` + of + `AND n = 2`,
			"due_is_settled", "Payment 2 is not what entries of credits applied and returned",
		},
		{
			"a payment by credits was reversed, and returned none", `UPDATE payments SET reversed_at = 1, reversal_reason = 'x'` + of + `AND n = 2`,
			"due_is_settled", "Payment 2 is not what entries of credits applied and returned",
		},
		{
			"credits pay by a payment of money", `UPDATE credit_entries SET paid_n = 1 WHERE paid_invoice =` + next,
			"due_is_settled", "is not what entries of credits applied and returned",
		},
		{
			"a void invoice is paid", `UPDATE invoices SET status = 'void' WHERE id =` + next + `; DELETE FROM unpaid_invoices` + of,
			"adjustments_are_claimed due_is_settled", "no invoice",
		},
		{
			"an invoice would never be overdue", `DELETE FROM unpaid_invoices` + of,
			"due_is_settled", "there must be a row in unpaid_invoices",
		},
		{
			"an invoice would be overdue for ever",
			`INSERT INTO unpaid_invoices (invoice_id, customer_id, due_at, period_end) SELECT id, customer_id, 0, 0 FROM invoices WHERE status = 'paid' AND kind <> 'credit_note' LIMIT 1`,
			"due_is_settled", "The invoice is paid",
		},
		{
			"a note took another part of what was open",
			`UPDATE note_money SET open_minor = open_minor - 1, outside_minor = outside_minor + 1, carried_minor = carried_minor + 1 WHERE invoice_id =` + first,
			"lines_are_totals paid_out_is_paid_in", "Where the note's money went does not add up",
		},
		{
			"a note paid out what nobody paid", `UPDATE note_money SET open_minor = open_minor - 1, outside_minor = outside_minor + 1 WHERE invoice_id =` + first,
			"paid_out_is_paid_in", "expected:0 found:1",
		},
		{
			"a note returned nothing to credits", `UPDATE note_money SET open_minor = open_minor - 1, returned_minor = 1 WHERE invoice_id =` + first,
			"lines_are_totals", "The note returned another amount to credits",
		},
	}
}
