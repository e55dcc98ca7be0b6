// Package queue is what lanes and ledgers share: a caller's hit, and how the caller hears of its
// end (hit.go); the queue that a worker takes from (inbox.go); hits of one target, which the
// model decides together (group.go). The settings and totals of the node are in node.go.
//
// A ticket belongs to its caller while it is queued: giving up leaves no trace then. From the
// moment it is taken into a batch it is done, or not, whatever its caller does.
//
// The package must never send a statement.
package queue
