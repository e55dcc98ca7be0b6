// Package embedded owns the private PostgreSQL server that quotad starts when it is given none.
// It owns the server's programs, data directory, process, log and socket, and what an earlier
// server has left.
//
// It knows no table of quotad: it makes only the role and the database. It never runs a server
// as root, never listens on the network, and never touches a PostgreSQL that it did not set up.
//
// The directory of an embedded server:
//
//	quotad.lock      held (flock) by the quotad that owns the directory
//	pgdata/          PostgreSQL's data, owned by the user the server runs as
//	socket-dir       names the socket's directory when that is elsewhere
//	pgdata.init-*/   an initdb under way, or one that was cut off
//	run/             the socket, 0700; under the temp directory when the path
//	                 would be too long for a socket
//	postgresql.conf, pg_hba.conf   written again at every start
//	custom.conf      the operator's own settings; wins over postgresql.conf
//
// All but pgdata and run belong to quotad's own user. So the server's user cannot plant symbolic
// links that a quotad running as root would follow.
package embedded
