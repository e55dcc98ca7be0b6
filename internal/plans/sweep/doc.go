// Package sweep owns the work that every node does in the background, on what is no longer
// needed. A Sweeper ends overrides that have expired, takes erased customers' keys out of old
// changes and out of the audit trail, and removes sessions of the pages that are over. A Trimmer
// deletes what is old of that trail. A Forgetter removes idle anonymous customers, and then their
// counters. An
// Archiver empties the counters of archived customers.
//
// Any number of nodes may do the same work at once: the later one finds less to do. No request
// waits for it, and each of its transactions is short.
//
// It is the only part of plans that changes counters, and it does so only by package quota's
// functions. It never loses a unit: what a counter has counted is booked as usage before the
// counter is deleted.
package sweep
