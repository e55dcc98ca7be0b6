// Package locked performs the operations that need locks, because a lane cannot perform them by
// compare-and-swap: requests with an id, refunds, reservations, imports, atomic batches, and hits
// that a lane has passed to the worker.
//
// A worker has one connection. It collects operations, and performs a batch of them in one
// transaction:
//
//   - The worker locks the rows of all their counters in key order, and reads the rows (read.go).
//   - The worker performs one operation after the other on the Go model, in memory (batch.go). The
//     working copy of the locked rows is in transaction.go.
//   - The worker writes the changed rows, and commits (write.go).
//
// A request that is sent twice with its id locks the same counter twice. Therefore the second
// request finds the receipt of the first request.
//
// The package must never perform an operation in part, and must never respond before the commit is
// acknowledged. If the outcome of a commit is unknown, the package sends an operation again only if
// all parts of the operation have ids. docs/internals/locked.md contains the reasons.
package locked
