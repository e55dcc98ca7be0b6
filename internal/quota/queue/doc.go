// Package queue owns what lanes and ledgers share:
//
//   - a caller's hit, and how the caller hears of the result (hit.go);
//   - the queue that a worker takes from, which is fair between senders (inbox.go);
//   - a group: hits on one target, which the model decides together (group.go);
//   - the settings and totals of a node (node.go).
//
// A ticket belongs to its caller while the ticket is queued: a caller who gives up then leaves
// no trace. Once a worker has taken a ticket into a batch, the caller has no say any more.
//
// The package must never send a statement.
package queue
