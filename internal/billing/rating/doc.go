// Package rating owns what a price makes of a quantity: the amounts of invoice lines, their
// cut in periods that were cut, taxes, and how an amount is written.
//
// Decimal numbers are exact: a step that would round one is an error. Ratios are computed in
// whole numbers of any size. There are no floats. A line is rounded once, half away from zero,
// to the minor unit of its currency.
//
// The package is pure. It must never read a clock, reach the database or speak HTTP. Of quotad
// it knows only words: those of package plans, and those of package billing for a line. It takes
// no period, invoice or customer: who calls it says which quantity, which time and which price.
package rating
