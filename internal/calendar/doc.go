// Package calendar owns civil time: billing periods, calendar windows (day,
// week, month, year) and the hours in which usage is counted, all in the IANA
// timezone of a customer.
//
// Every instant at its surface is an int64 of microseconds since the Unix
// epoch (UTC), and every window is half open, [start, end). There is one rule
// for turning a wall clock into an instant, the contract's: where the zone's
// clock jumps over the wall clock (a gap) or shows it twice (an overlap), the
// offset in force before the jump counts. The standard library's time.Date and
// PostgreSQL's AT TIME ZONE both choose differently, so neither may be used
// for a boundary, here or elsewhere.
//
// The package is pure: it must never read a clock, read or write anything, or
// know of plans, limits and customers. Its zone data are built into the program.
//
// Instants from MinInstant to MaxInstant are in range; one outside is taken as
// the nearest inside.
package calendar
