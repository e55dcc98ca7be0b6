// Package events owns the feed of events: what happened to customers, plans and invoices.
//
// A write inserts its events into the table outbox in its own transaction. Therefore an event exists if and only
// if the write was committed. A Numberer on each node moves committed events to the table events and assigns
// their ids. It assigns an id after the commit, in a transaction that locks the last number. Therefore no id
// appears below an id that was already shown, however late a transaction commits.
//
// Events contain ids, numbers, statuses and amounts, and nothing that identifies a person. An event refers to
// its customer by the id of the customer's row, so that the events of an erased customer show the customer's new
// key.
package events
