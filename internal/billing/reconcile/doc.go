// Package reconcile proves that the books agree: what was charged, booked, rated, billed and paid.
//
// It walks over all rows of a kind, a page at a time, in the order of their key. Each page is
// looked at in one short snapshot of its own. Whatever changes many rows together does so in one
// transaction, so what belongs together is in a snapshot together, however busy the database is.
// What disagrees is looked at again in a new snapshot, and told only if it still does.
//
// It only reads. It must never put anything right, hold a transaction open for longer than half
// a second, or keep more than a page in memory.
package reconcile
