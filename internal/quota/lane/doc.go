// Package lane charges most hits. A lane is a worker with one connection. While one batch of
// hits is on its way to the database, the lane gathers the next.
//
// The Go model decides the hits on the rows as this node remembers them. The lane writes the
// charged rows by compare-and-swap (swap.go): one UPDATE for the batch. The UPDATE leaves a row
// alone that somebody else has written meanwhile.
//
// A compare-and-swap cannot do all hits. The lane hands the others over to its worker: hits on
// several counters, on rows that another node writes, on rows with holds.
//
// The package must never charge a row other than the one that was decided on. It must never
// send hits again whose outcome is unknown. It tells a caller of a charge only when the commit
// is acknowledged.
package lane
