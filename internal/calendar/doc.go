// Package calendar owns civil time: billing periods, calendar windows (day, week, month,
// year) and the hours in which usage is counted, all in the IANA timezone of a customer.
//
// An instant at its surface is an int64 of microseconds since the Unix epoch (UTC). A window
// is half open, [start, end).
//
// One rule turns a wall clock into an instant, the contract's. Where the zone's clock jumps
// over the wall clock (a gap) or shows it twice (an overlap), the offset in force before the
// jump counts. The standard library's time.Date and PostgreSQL's AT TIME ZONE both choose
// differently. So neither may be used for a boundary, here or elsewhere.
//
// The package is pure. It must never read a clock, read or write anything, or know of plans,
// limits and customers. Its zone data are built into the program.
//
// Instants from MinInstant to MaxInstant are in range. One outside is taken as the nearest
// inside.
package calendar
