// Package calendar owns civil time: billing periods, calendar windows (day, week, month, year), and the hours in
// which usage is counted, all in a customer's IANA timezone.
//
// Exported functions take and return an instant as an int64, in microseconds since the Unix epoch (UTC). A
// window is half open, [start, end).
//
// One rule converts a wall-clock time to an instant. If the zone's clock skips the time (a gap) or shows it
// twice (an overlap), the offset in force before the jump is used. The standard library's time.Date and
// PostgreSQL's AT TIME ZONE use other rules, so boundaries must never be computed with them, in this package or
// elsewhere.
//
// The package is pure. It must never read a clock, perform I/O, or depend on plans, limits or customers. Its
// zone data is built into the program.
//
// Instants from MinInstant to MaxInstant are in range. An instant out of range is replaced by the nearest
// instant in range.
package calendar
