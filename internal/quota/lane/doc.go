// Package lane charges most hits. A lane is a worker with one connection. While one batch of hits is on its way to
// the database, the lane collects the next batch.
//
// The Go model decides the hits on the rows that this node remembers. The lane writes the charged rows by
// compare-and-swap (swap.go), with one UPDATE for the batch. The UPDATE does not touch a row that another writer
// has changed in the meantime.
//
// A compare-and-swap cannot charge all hits. The lane hands over to its worker hits on several counters, hits on
// rows that another node writes, and hits on rows with holds.
//
// The package must never charge a row other than the row on which the hit was decided. It must never send hits
// again whose outcome is unknown. It reports a charge to a caller only after the commit is acknowledged.
package lane
