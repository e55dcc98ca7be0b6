// Package lane charges most hits. A lane is a worker with one connection, and gathers hits while
// its last batch is on its way.
//
// The Go model decides the hits on the rows as this node remembers them. The lane writes what
// that leaves by compare-and-swap (swap.go): one UPDATE, which leaves a row alone that somebody
// else has written meanwhile.
//
// What a compare-and-swap cannot do the lane hands over to its ledger: hits on several
// counters, rows that another node writes, rows with holds.
//
// The package must never charge a row that is not the one that was decided on. It must never
// send hits again whose outcome is unknown. It tells a caller of a charge only when the commit
// is acknowledged.
package lane
