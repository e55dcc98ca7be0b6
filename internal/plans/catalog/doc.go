// Package catalog owns a node's cache of meters, plans, customers and keys. The cache determines, without
// a statement, the limits in force for a customer on a meter. Hits use its Catalog, which Run keeps
// current. The package makes three promises:
//
//   - A result is never older than the newest change that the node had applied at the time of the call.
//     Fresh reports whether the node has seen all changes of the last second.
//   - All parts of a result were true at one change number. A customer is never combined with a plan of
//     another moment.
//   - Target.Change grows whenever the limits of a customer change, and is the same on every node. A
//     counter can therefore distinguish an older judgement from a newer one.
//
// TestResolvedTargetsWereTrueOnce checks all three promises.
//
// The package reads the rows that package store has written. It writes only the anonymous customer of a
// first hit. It never decides a hit and never changes a counter.
package catalog
