// Package sweep owns the background work that every node does on data that is no longer needed. A Sweeper
// ends expired overrides, removes erased customers' keys from old changes and their data from the audit
// trail, and removes ended sessions of the pages. A Trimmer deletes old entries of the audit trail. A
// Forgetter removes idle anonymous customers and later their counters. An Archiver empties the counters
// of archived customers.
//
// Any number of nodes may do the same work at once, because later nodes find less to do. No request waits
// for this work, and each of its transactions is short.
//
// This package is the only part of plans that changes counters, and it does so only through functions of
// package quota. It never loses a unit, because the units of a counter are booked as usage before the
// counter is deleted.
package sweep
