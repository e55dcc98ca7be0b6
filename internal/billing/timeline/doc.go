// Package timeline owns which billing periods a customer has: where each begins and ends, and
// what it is priced by. It is pure. It must never read a clock or the database, and it computes
// no amounts.
//
// A customer's periods are chained. Each begins where the one before it ended. The chain begins
// at starts_at. It ends at ends_at or at the archiving, and another one begins where billing
// begins again.
package timeline
