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
			"digests_match", "says something else",
		},
		{
			"the form of a digest", `UPDATE invoices SET digest_form = 1 WHERE id =` + first,
			"digests_match", "says something else",
		},
		{
			"a form that only a newer version knows", `UPDATE invoices SET digest_form = 9 WHERE id =` + first,
			"digests_match", "form 9",
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
			"nothing was copied", `UPDATE line_adjustments SET cost = NULL, at = NULL, reason = NULL` + own,
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
