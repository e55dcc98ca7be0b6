// Package postgres owns quotad's way to its database: pools and connections, migrations at
// start, the one clock, and what an error of the database means (outage.go).
//
// It must never name a table of quotad's, start a server (package embedded does), or print a
// password.
package postgres
