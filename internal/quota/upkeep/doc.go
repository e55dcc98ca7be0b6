// Package upkeep keeps the hot tables small and verifies them.
//
//   - Cleaner removes counters of values that have their whole quota again.
//   - ClearCounters books and clears the counters of archived and forgotten customers.
//   - Rotator rotates the tables of receipts.
//   - Mismatches compares the charged units with the booked units.
//
// All nodes may run these tasks on the same database. The package locks rows in the lock order of hits, and skips
// rows that a hit has locked.
//
// The package must never lose a unit, so each removed row has been booked as usage or is equivalent to a missing
// row. It must never block hits.
package upkeep
