// Package plans owns meters, plans and their versions, customers and keys: their rules, their
// tables, and the memory that says which limits are in force for a customer on a meter.
//
// A Store is what admins use. Every write is one transaction. It takes the next change number,
// leaves a row that says what changed, and wakes the nodes. Plan versions are immutable.
// customerColumns says which version is in force for a customer.
//
// A Catalog is what hits use: a node's memory of all that. It answers without a statement. Run
// keeps it current. Three things hold in it, which TestResolvedTargetsWereTrueOnce checks:
//
//   - An answer is never older than the newest change that the node had applied when it was
//     asked. Fresh says whether that is all changes of the last second.
//   - An answer was true as a whole at one change number. A customer is never put together
//     with a plan of another moment.
//   - Target.Change grows whenever what is in force for a customer changes. It is the same on
//     every node, so counters can tell an older judgement from a newer one.
//
// The package must never decide a hit. It touches no counters but those of customers that are
// archived (see Archiver) or forgotten (see Forgetter).
package plans
