// Package closing owns the worker of billing: it begins and closes periods when they are due, has their
// invoices written and finalized, and says how billing stands. Any number of nodes run it on one
// database.
//
// It also brings counters back that are ahead of the clock, but never to before the end of a period that was closed.
//
// It decides what is done when, and for how many customers at once. What is due it asks of package
// accounts, and what an invoice holds of package invoices. It must never rate or compute a boundary.
package closing
