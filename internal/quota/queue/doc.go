// Package queue owns what lanes and workers share:
//
//   - the queue that a worker takes from; a caller's hit, and how the caller hears of the result; a
//     group: hits on one target, which the model decides together (inbox.go);
//   - lines that are served in turn, a sender each (lines.go);
//   - shares of what a node has so many of: a sender has half (shares.go);
//   - the settings and totals of a node (node.go).
//
// A ticket belongs to its caller while the ticket is queued: a caller who gives up then leaves
// no trace. Once a worker has taken a ticket into a batch, the caller has no say any more.
//
// The package must never send a statement.
package queue
