// Package quota decides hits: the limits and their arithmetic, the engine that gathers
// hits into batches, and the statements that charge them.
//
// There is one arithmetic, the Go model (level.go, an algorithm a file, and group.go). Two
// ways charge what it says: a lane swaps rows that are still as it knows them (swap.go), and
// a ledger locks rows first, for all that a swap cannot do (ledger.go). All time is integer
// microseconds since the Unix epoch and comes in as an argument; all quantities are integers.
// Nothing here knows of HTTP, plans or keys, and no SQL judges a limit.
package quota
