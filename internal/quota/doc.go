// Package quota is the engine: it decides hits and returns the remaining quota of customers.
//
// The package owns the interface of the engine. Engine decides hits (engine.go), sends operations with an id to
// the worker (operations.go) and reads the state of customers (read.go). It counts its work (stats.go) and
// writes refused units every second (denials.go).
//
// The packages below do the work. Lanes charge most hits by compare-and-swap. Workers do everything else under
// locks. The Go model computes the result of each limit.
//
// Time is an integer number of microseconds since the Unix epoch and is always an argument. Quantities are
// integers.
//
// The package must never depend on HTTP, plans or keys, and must never compute the result of a limit itself.
package quota
