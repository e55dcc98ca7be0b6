// Package model is the Go model: the code that computes the result of limits. There is no other arithmetic,
// neither in SQL nor elsewhere.
//
// It owns
//
//   - limits and their checks (limit.go), and the algorithms, each in a file (algorithm.go specifies
//     what an algorithm must implement);
//   - targets, by which hits are judged (target.go), and rows as a node remembers them (known.go);
//   - hits that are decided one after the other, and the row after a charge (charge.go);
//   - decisions and their views (decision.go).
//
// Quantities are integers, and time is integer microseconds since the Unix epoch.
//
// The package is pure. It must never read a clock, send a statement, start a goroutine, or use a float.
package model
