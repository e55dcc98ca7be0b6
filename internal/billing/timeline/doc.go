// Package timeline computes a customer's billing periods: the start, the end and the pricing terms of each
// period. The package is pure. It must never read a clock or the database, and it computes no amounts.
//
// The periods of a customer form a chain, in which each period begins at the end of the one before. The chain
// begins at starts_at. It ends at ends_at or at the archiving. If billing begins again, another chain begins.
package timeline
