// Package postgres owns quotad's way to its database: the pools and
// connections, the migrations at start, the one clock, and what an error of
// the database means (outage.go).
//
// It knows nothing of quotas: no table of quotad is named here. It never
// starts a server, which is for package embedded, and never prints a password.
package postgres
