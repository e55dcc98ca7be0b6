// Package upkeep keeps the hot tables small, and checks them.
//
//   - Cleaner removes counters of values that are full again.
//   - ClearCounters books and clears what archived and forgotten customers left.
//   - Rotator lets the tables of receipts take turns.
//   - Mismatches compares what was charged with what was booked.
//
// All nodes may run it, on the same database. It takes rows in the lock order of hits, and
// skips rows that a hit holds.
//
// The package must never lose a unit: what it removes is booked as usage, or says no more than
// a missing row. It must never hold up hits.
package upkeep
