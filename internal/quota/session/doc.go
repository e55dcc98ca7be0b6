// Package session owns one connection of a lane or a ledger, which is made in the background
// (session.go), and what a failure means for the hits on it (errors.go, trouble.go).
//
// A batch is one round trip (conn.go), a transaction several (flight.go). Both speak
// PostgreSQL's binary formats (wire.go).
//
// A failure is one of three: nothing was sent; the server rolled back; nobody can know. The
// three must never be mixed up. Hits of the first two may be charged later; those of the third
// must not be sent again.
//
// The package must never know what a statement is for, or what limits say.
package session
