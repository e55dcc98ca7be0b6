// Package events owns the feed of events: what happened to customers, plans and invoices.
//
// An event is written into the outbox in the transaction of what it tells of. So it is there if that
// happened, and not otherwise. A Numberer of each node moves what is committed to the table events,
// and gives it ids. An id is given after the commit, in a transaction that has the last number locked.
// So none appears below one that was shown, however late a transaction commits.
//
// Events say ids, numbers, statuses and amounts, and nothing that identifies a person. The customer is
// named by its row's id, so that an erased one is named by its new key.
package events
