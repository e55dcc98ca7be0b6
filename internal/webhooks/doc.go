// Package webhooks sends events to URLs, signed as the Standard Webhooks specification requires.
//
// A delivery is a row that names an event and a webhook. The transaction that assigns the event's id inserts the
// row, so that no crash loses a delivery. A Sender on each node leases rows that are due. If a node is killed,
// other nodes take its rows when the lease expires. Therefore each event is sent at least once, always under the
// same id.
//
// A URL belongs to somebody else. The sender checks each address when it dials the address, whatever the name
// resolved to before. It follows no redirect and reads little of an answer. Each webhook has few concurrent
// sends, so that a stalled webhook does not delay the others.
package webhooks
