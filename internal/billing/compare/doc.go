// Package compare says what two versions of a plan would have made of the usage of the past: the
// units that they refuse, and what they bill.
//
// Usage is stored by the hour. So the package can say some things exactly, and others not:
//
//   - A fixed window that hours fill without a rest is played hour by hour, and exact for hits of
//     one unit.
//   - Other windows of whole hours are played too, with the units of an hour spread evenly.
//   - Of shorter windows only the least and the most that they could refuse is known.
//   - Allocations and concurrency limits are left out: hours do not show what they judge.
//
// The package is pure. It reads nothing, and never reads a clock. Money is computed by package
// rating. Instants are integer microseconds since the Unix epoch.
package compare
