// Package compare simulates two versions of a plan with past usage, and compares the units that they
// refuse and the amounts that they bill.
//
// Usage is stored by the hour, so only some results are exact:
//
//   - A fixed window that consists of whole hours is simulated hour by hour. The result is exact for hits
//     of one unit.
//   - Other windows of whole hours are simulated, too, with the units of an hour spread evenly.
//   - For shorter windows, only the least and the most units that they could refuse are known.
//   - Allocations and concurrency limits are left out, because hours do not contain the data that these
//     limits count.
//
// The package is pure. It reads no data and no clock. Package rating computes the money. Instants are
// integer microseconds since the Unix epoch.
package compare
