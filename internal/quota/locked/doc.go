// Package locked does under locks what a lane cannot do by compare-and-swap: requests with an
// id, refunds, reservations, imports, atomic batches, and hits that a lane handed over.
//
// A worker has one connection. It gathers operations, and does a batch of them in
// one transaction:
//
//   - it locks the rows of all their counters in key order, and reads them (read.go);
//   - it does one operation after the other on the Go model, in memory (batch.go); transaction.go is
//     the working copy of the locked rows;
//   - it writes the rows that changed, and commits (write.go).
//
// A request that is sent twice with its id locks the same counter twice. So the second time it
// finds the receipt of the first.
//
// The package must never do an operation in part. It must never answer before the commit is
// acknowledged. If the outcome of a commit is unknown, it sends an operation again only if all
// of the operation has ids.
// docs/internals/locked.md says why.
package locked
