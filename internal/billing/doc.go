// Package billing defines the terms of billing: accounts, periods, invoices, lines and credits. Its
// subpackages do the work:
//
//   - rating computes the cost of units, without a database.
//   - timeline computes the next period and its prices, without a database.
//   - assembly computes an invoice from a period's terms and usage, without a database.
//   - accounts contains the SQL of accounts, sellers, customers' own prices and periods.
//   - invoices contains the SQL of invoices, charges and credits.
//   - closing contains the worker that closes periods and finalizes invoices.
//   - document renders an invoice as HTML, CSV and PDF.
//   - archive moves old months of usage out of the database.
//   - reconcile contains queries that must return no rows.
//
// Instants are int64 µs since the Unix epoch by the customer's clock. Money is int64 in minor units of the
// currency.
package billing
