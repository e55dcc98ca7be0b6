// Package upkeep keeps the hot tables small, and checks them: it removes counters that are
// full again (Cleaner), books and clears what archived and forgotten customers left, lets the
// tables of receipts take turns (Rotator), and compares what was charged with what was booked
// (Reconcile).
//
// All nodes may run it, on the same database. It takes rows in the lock order of hits, and
// skips rows that a hit holds.
//
// The package must never lose a unit: what it removes is booked as usage, or says no more than
// a missing row. It must never hold up hits.
package upkeep
