// Package assembly computes invoices. It turns a period, its terms and the sums of its usage into an invoice
// with lines, taxes and credits. It turns an invoice into credit notes.
//
// The package decides which lines an invoice has, their order, their time spans and their sums. Package
// rating computes the cost of a quantity. The same functions compute drafts, upcoming invoices and the
// amounts of the quota endpoint, so the amounts are equal if the usage is equal.
//
// The package is pure: the same input yields the same invoice. It must never read a clock, access the
// database or use HTTP. It never modifies its input. It returns the effects of a finalized invoice on credits
// as data.
package assembly
