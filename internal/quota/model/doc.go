// Package model is the Go model: the code that says what limits say. There is no other
// arithmetic, neither in SQL nor elsewhere.
//
// It owns
//
//   - limits and their checks (limit.go), and the algorithms, a file each (algorithm.go says
//     what an algorithm must do);
//   - targets, which are what hits are judged by (target.go), and rows as a node remembers
//     them (known.go);
//   - hits that are decided one after the other, and what a charge leaves in a row (charge.go);
//   - decisions, and how they are shown (decision.go).
//
// Quantities are integers, and time is integer microseconds since the Unix epoch.
//
// The package is pure. It must never read a clock, send a statement, start a goroutine, or use
// a float.
package model
