// Package postgres owns quotad's way to its database: the private server that
// quotad starts when it is given none, the pools and connections, the
// migrations at start, and the one clock.
//
// It knows nothing of quotas: no table of quotad is named here. It never runs
// a server as root, never listens on the network, never touches a PostgreSQL
// that it did not set up itself, and never prints a password.
//
// The directory of an embedded server:
//
//	quotad.lock      held (flock) by the quotad that owns the directory
//	pgdata/          PostgreSQL's data, owned by the user the server runs as
//	socket-dir       names the socket's directory when that is elsewhere
//	pgdata.init-*/   an initdb under way, or one that was cut off
//	run/             the socket, 0700; under the temp directory when the path
//	                 would be too long for a socket
//	postgresql.conf, pg_hba.conf   written anew at every start
//	custom.conf      the operator's own settings; wins over postgresql.conf
//
// All but pgdata and run belongs to quotad's own user, so that the server's
// user cannot lead a quotad that runs as root astray by links.
package postgres
