// Package model is the Go model: the code that says what limits say. There is no other
// arithmetic, neither in SQL nor elsewhere.
//
// It owns limits and their checks (limit.go), the algorithms (a file each; level.go says what
// each must do), targets (target.go), what a charge leaves in a row (charge.go), decisions and
// how they are shown (decision.go), and rows as a node remembers them (known.go).
//
// Quantities are integers, and time is integer microseconds since the Unix epoch.
//
// The package is pure. It must never read a clock, send a statement, start a goroutine, or use
// a float.
package model
