// Package billing has the words of billing: accounts, periods, invoices, lines, credits. Its
// rooms do the work:
//
//   - rating: what units cost; pure.
//   - timeline: which period follows, and what prices it; pure.
//   - assembly: an invoice from a period's terms and usage; pure.
//   - accounts: the SQL of accounts, sellers, prices of customers' own, and periods.
//   - invoices: the SQL of invoices, charges and credits.
//   - closing: the worker that closes periods and finalizes invoices.
//   - document: an invoice as HTML, CSV and PDF.
//   - archive: takes old months of usage out.
//   - reconcile: queries that must return no rows.
//
// Instants are int64 µs since the Unix epoch by the customer's clock. Money is int64 in minor
// units of the currency.
package billing
