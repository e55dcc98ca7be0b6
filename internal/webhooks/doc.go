// Package webhooks sends events to URLs, signed as Standard Webhooks say.
//
// Which event is to be sent where is a row of deliveries. It is written in the transaction that gives the
// event its id, so no crash loses it. A Sender of each node takes rows that are due, by a lease: a node
// that is killed leaves rows that others take when the lease is over. So an event is sent at least
// once, always under its own id.
//
// A URL is somebody else's. Addresses are checked when they are dialled, whatever the name meant before.
// No redirect is followed, little is read of an answer, and each webhook has few sends under way, so that
// one that stalls keeps no other waiting.
package webhooks
