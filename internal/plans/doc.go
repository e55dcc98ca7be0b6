// Package plans owns meters, plans and their versions, customers and keys: their rules,
// their tables, and the memory that answers, without a statement, which limits are in
// force for a customer on a meter.
//
// A Store is what admins use: every write is one transaction that takes the next change
// number, leaves a row that says what changed, and wakes the nodes. Plan versions are
// immutable; which one is in force for a customer is said at customerColumns.
//
// A Catalog is what hits use: a node's memory of all that, kept current by Run. In it,
//
//   - an answer is never older than the newest change that the node had applied when it
//     was asked, and Fresh says whether that is all changes of the last second;
//   - an answer was true as a whole at one change number: a customer is never put
//     together with a plan of another moment;
//   - Target.Change grows whenever what is in force for a customer changes, and is the
//     same on every node, so that counters can tell an older judgement from a newer one.
//
// TestResolvedTargetsWereTrueOnce holds all three. The package touches no counter
// but those of customers that are forgotten (see Forgetter), and never decides a hit.
package plans
