// Package reconcile verifies that the books agree: the charged, booked, rated, billed and paid amounts.
//
// The package reads all rows of a kind in pages, in the order of their keys. Each page is checked in one
// short snapshot of its own. Every change of related rows is one transaction, so a snapshot always contains
// related rows together, however busy the database is. A row that disagrees is checked again in a new
// snapshot, and reported only if it still disagrees.
//
// The package only reads. It must never repair data, keep a transaction open for longer than half a second,
// or keep more than a page in memory.
package reconcile
