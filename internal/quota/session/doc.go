// Package session owns one connection of a lane or a ledger: its making in the background, its
// settings and prepared statements, a batch in one round trip (conn.go), a transaction of
// several (flight.go), PostgreSQL's binary formats (wire.go), and what a failure means for the
// hits on it (errors.go, trouble.go).
//
// A failure is one of three: nothing was sent; the server rolled back; nobody can know. The
// three must never be mixed up: hits of the first two may be charged later, those of the third
// must not be sent again.
//
// The package must never know what a statement is for, or what limits say.
package session
