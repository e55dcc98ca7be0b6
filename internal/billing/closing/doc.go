// Package closing owns the billing worker. The worker begins and closes periods when they are due, has their
// invoices written and finalized, and reports the state of billing. Any number of nodes may run the worker on
// one database.
//
// The package also brings back counters that are ahead of the clock, but never to an instant before the end
// of a closed period.
//
// The package decides the order of the steps and the number of customers in a transaction. Package accounts
// returns the due steps, and package invoices computes the invoices. Package closing must never rate usage or
// compute a boundary.
package closing
