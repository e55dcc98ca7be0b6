// Package queue owns the data that lanes and workers share:
//
//   - the queue of a lane or worker; a caller's hit, and how its result reaches the caller; a group
//     of hits on one target, which the model decides together (inbox.go);
//   - lines of waiting items, one for each sender, which are served in turn (lines.go);
//   - shares of a node's limited resources, of which a sender may use half (shares.go);
//   - the settings and totals of a node (node.go).
//
// A queued ticket belongs to its caller, so a caller that gives up then leaves no trace. After a worker has taken
// a ticket into a batch, the caller can no longer withdraw it.
//
// The package must never send a statement.
package queue
