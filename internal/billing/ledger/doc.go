// Package ledger owns the SQL of billing: accounts, open and closed periods, invoices, charges,
// credits. Its worker closes periods that have ended and finalizes their invoices.
//
// What a period holds comes of package timeline, and what an invoice holds of package assembly.
// The ledger reads what they need, in few statements for many customers, and writes what they
// say. It must never rate, compute a boundary, or change what is finalized.
//
// The row of open_periods is the lock of a customer's billing. Every transaction takes rows in
// the order that migrations/00006_billing.sql says.
package ledger
