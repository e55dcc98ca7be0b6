// Package plans owns the types and rules of meters, plans and their versions, customers,
// overrides and keys. The rules say what each may be, what is wrong with one, and how it is
// stored and shown. The API tells the package's errors to clients.
//
// Package store reads and writes these types. Package catalog remembers them for hits. Package
// sweep works on them behind requests. Package plans knows none of the three, and no database
// and no clock.
//
// It never decides a hit: limits and their arithmetic are those of package model.
package plans
