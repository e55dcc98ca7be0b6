// Package session owns the connection of a lane or a worker. It makes the connection in the
// background (session.go), and says what a failure means for hits (errors.go, trouble.go).
//
// A lane's batch is a transaction of one round trip (conn.go). A worker's transaction has
// several (pipeline.go). Both speak PostgreSQL's binary formats (wire.go).
//
// A failure is one of three: nothing was sent; the server rolled back; nobody can know. The
// package must never mix up the three. Hits may be sent again after the first two, and not
// after the third.
//
// The package must never know what a statement is for, or what limits say.
package session
