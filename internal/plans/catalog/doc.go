// Package catalog owns a node's memory of meters, plans, customers and keys. It answers, without
// a statement, which limits are in force for a customer on a meter. Hits use its Catalog, which
// Run keeps current. It promises three things:
//
//   - An answer is never older than the newest change that the node had applied when it was
//     asked. Fresh says whether the node has seen all changes of the last second.
//   - An answer was true as a whole at one change number. A customer is never combined with a
//     plan of another moment.
//   - Target.Change grows whenever the limits of a customer change, and is the same on every
//     node. So a counter can tell an older judgement from a newer one.
//
// TestResolvedTargetsWereTrueOnce holds all three.
//
// It reads what the store has written. It writes only one thing itself: the anonymous customer
// of a first hit. It never decides a hit, and never touches a counter.
package catalog
