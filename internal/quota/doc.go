// Package quota is the engine: it decides hits, and answers what customers have left.
//
// The package owns the way in and out: Engine decides hits (engine.go), has the
// worker do what has an id (operations.go), and reads how customers stand (read.go). It counts
// what it does (stats.go) and writes what was refused every second (denials.go).
//
// The work is done in the rooms below. Lanes charge most hits by compare-and-swap. Workers do
// all else under locks. The Go model says what limits say.
//
// Time is integer microseconds since the Unix epoch, and comes in as an argument. Quantities
// are integers.
//
// The package must never know of HTTP, plans or keys, nor compute what a limit says.
package quota
