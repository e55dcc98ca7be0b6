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
