// Package calendar owns civil time: billing periods, calendar windows (day, week, month, year), and the hours in
// which usage is counted, in the IANA timezone of a customer.
//
// In the package's API, an instant is an int64 of microseconds since the Unix epoch (UTC). A window is half
// open, [start, end).
//
// One rule of the contract converts a wall-clock time into an instant. If the clock of the timezone skips the
// wall-clock time (a gap) or shows it twice (an overlap), the offset in force before the jump applies. The
// standard library's time.Date and PostgreSQL's AT TIME ZONE use other rules, so neither may be used for a
// boundary, here or elsewhere.
//
// The package is pure. It must never read a clock, do input or output, or know of plans, limits and customers.
// Its timezone data is built into the program.
//
// Instants from MinInstant to MaxInstant are in range. An instant outside is treated as the nearest instant
// inside.
package calendar
