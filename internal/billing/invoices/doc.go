// Package invoices owns the SQL of billed items: invoices and their lines, credit notes, charges and credits.
//
// Package assembly computes the contents of an invoice. Package invoices reads the input for assembly, with
// few statements for many customers, and writes the result. It must never rate usage, or change a finalized
// invoice.
package invoices
