// Package postgres owns quotad's way to its database: connection pools, single connections,
// migrations at start, and the one clock. It also says how a server is (standing.go), and what an
// error of the database means (outage.go).
//
// It must never name a table of quotad's, start a server (package embedded does), or print a
// password.
package postgres
