// Package catalog owns a node's memory of meters, plans, customers and keys. Without a statement
// it says which limits are in force for a customer on a meter. Hits use its Catalog, and Run
// keeps the Catalog current. Three rules hold:
//
//   - An answer is never older than the newest change that the node had applied when the
//     Catalog was asked. Fresh says whether these are all changes of the last second.
//   - An answer was true as a whole at one change number. A customer is never put together with
//     a plan of another moment.
//   - Target.Change grows whenever the limits in force for a customer change. It is the same on
//     every node. So counters can tell an older judgement from a newer one.
//
// TestResolvedTargetsWereTrueOnce holds all three.
//
// The package reads what package store wrote. It writes only the anonymous customer of a first
// hit. It never decides a hit, and never touches a counter.
package catalog
