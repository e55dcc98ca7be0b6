// Package quota is the engine: it decides hits, and answers what customers have left.
//
// The package owns the way in and out: Engine with Decide, DecideAll and the operations with
// ids (refunds, reservations, imports), the reads (read.go), the statistics (stats.go) and the
// denials that are written every second (denials.go). The work is done in the rooms below:
// lanes charge most hits by compare-and-swap, ledgers do all else under locks, and the Go
// model says what limits say.
//
// All time is integer microseconds since the Unix epoch, and comes in as an argument. All
// quantities are integers.
//
// The package must never know of HTTP, plans or keys, nor compute what a limit says.
package quota
