// Package locked does under locks the operations that a lane cannot do by compare-and-swap: requests with an id,
// refunds, reservations, imports, atomic batches, and hits that a lane handed over.
//
// A worker has one connection. It collects operations, and does a batch of them in one transaction:
//
//   - it locks the rows of all their counters in the order of their keys, and reads them (read.go);
//   - it applies one operation after the other with the Go model, in memory (batch.go); transaction.go is
//     the working copy of the locked rows;
//   - it writes the changed rows, and commits (write.go).
//
// A request that is sent twice with its id locks the same counter twice, so the second request finds the receipt
// of the first.
//
// The package must never do an operation in part. It must never respond before the commit is acknowledged. If the
// outcome of a commit is unknown, it sends an operation again only if all parts of the operation have ids.
// docs/internals/locked.md contains the reasons.
package locked
