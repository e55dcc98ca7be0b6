// Package invoices owns the SQL of what is billed: invoices and their lines, credit notes, charges,
// credits.
//
// What an invoice holds comes of package assembly. Invoices read what it needs, in few statements for
// many customers, and write what it says. They must never rate, or change what is finalized.
package invoices
