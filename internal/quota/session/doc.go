// Package session owns the connection of a lane or a worker. It connects in the background (session.go), and
// determines what a failure means for hits (errors.go, trouble.go).
//
// A lane's batch is a transaction of one round trip (conn.go). A worker's transaction has several round trips
// (pipeline.go). Both use PostgreSQL's binary formats (wire.go).
//
// There are three kinds of failures: nothing was sent, the server rolled back, or the outcome is unknown. The
// package must never confuse them. Hits may be sent again after the first two, but not after the third.
//
// The package must never know the purpose of a statement or the result of limits.
package session
