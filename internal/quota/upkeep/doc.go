// Package upkeep keeps the hot tables small and verifies them.
//
//   - Cleaner removes counters of attribute values that have their whole quota again.
//   - ClearCounters books and clears the counters of archived and forgotten customers.
//   - Rotator rotates the tables of receipts.
//   - Mismatches compares charged units with booked units.
//
// All nodes may run this work on the same database. The package locks rows in the same order as
// hits, and skips rows that a hit has locked.
//
// The package must never lose a unit: before it removes a row, it books the row's units as usage,
// unless the row contains no more information than a missing row. The package must never delay hits.
package upkeep
