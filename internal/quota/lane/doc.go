// Package lane charges most hits. A lane is a worker with one connection. It gathers hits while
// a batch is on its way, has the Go model decide them on the rows as this node remembers them,
// and writes what that leaves by compare-and-swap: one UPDATE that leaves a row alone if
// somebody else has written it meanwhile (swap.go).
//
// What a compare-and-swap cannot do the lane hands over to its ledger: hits on several
// counters, rows that another node writes, rows with holds.
//
// The package must never charge a row that is not the one that was decided on, send hits again
// whose outcome is unknown, or tell a caller of a charge before the commit is acknowledged.
package lane
