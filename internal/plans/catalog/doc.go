// Package catalog owns a node's memory of meters, plans, customers and keys, which answers,
// without a statement, which limits are in force for a customer on a meter. Its Catalog is
// what hits use; Run keeps it current. In it,
//
//   - an answer is never older than the newest change that the node had applied when it
//     was asked, and Fresh says whether that is all changes of the last second;
//   - an answer was true as a whole at one change number: a customer is never put
//     together with a plan of another moment;
//   - Target.Change grows whenever what is in force for a customer changes, and is the
//     same on every node, so that counters can tell an older judgement from a newer one.
//
// TestResolvedTargetsWereTrueOnce holds all three.
//
// It reads what the store wrote, and writes one thing itself: the anonymous customer of a
// first hit. It never decides a hit, and never touches a counter.
package catalog
