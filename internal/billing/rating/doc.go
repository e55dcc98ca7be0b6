// Package rating computes the cost of a quantity: the amounts of invoice lines, their proration in cut
// periods, taxes, and the format of amounts.
//
// Decimal numbers are exact, and a step that would round one is an error. Ratios are computed in integers of
// any size. The package uses no floats. A line is rounded once, half away from zero, to the minor unit of its
// currency.
//
// The package is pure. It must never read a clock, access the database or use HTTP. From quotad it uses only
// the types of package plans, and those of package billing for a line. It handles no periods, invoices or
// customers: its callers pass the quantity, the time and the price.
package rating
