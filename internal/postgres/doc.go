// Package postgres owns quotad's access to its database: connection pools, single connections, migrations at
// start, and the one clock. It also reports the state of a server (standing.go) and the meaning of a database
// error (outage.go).
//
// The package must never name a table of quotad's, start a server (package embedded starts servers), or print a
// password.
package postgres
