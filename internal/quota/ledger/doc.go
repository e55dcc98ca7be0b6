// Package ledger does under locks what a lane cannot do by compare-and-swap: requests with an
// id, refunds, reservations, imports, atomic batches, and hits that a lane handed over.
//
// A ledger is a worker with one connection. It gathers operations, and does a batch of them in
// one transaction:
//
//   - it locks the rows of all their counters in key order, and reads them (read.go);
//   - it does one operation after the other on the Go model, in memory (apply.go); books.go is
//     the working copy of the locked rows;
//   - it writes what came of that, and commits (write.go).
//
// An operation with an id finds the receipt of any other with that id: whoever did that one
// held the same counter.
//
// The package must never do an operation in part, nor answer before the commit is
// acknowledged. What was sent with its commit it sends again only if all of it has ids.
// docs/internals/ledger.md says why.
package ledger
