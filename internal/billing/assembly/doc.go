// Package assembly makes invoices. From a period, its terms and the sums of its usage comes an
// invoice with its lines, taxes and credits. From an invoice come its credit notes.
//
// It owns which lines there are, in which order, from where to where, and what they add up to.
// What a quantity costs is rating's. Drafts, upcoming invoices and the amounts of the quota
// endpoint are made by the same functions, so they are equal where their usage is.
//
// The package is pure: the same input makes the same invoice. It must never read a clock, reach
// the database or speak HTTP. It changes nothing that it is given. What a finalized invoice
// does to credits is returned as data.
package assembly
