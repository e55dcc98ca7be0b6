// Package embedded owns the private PostgreSQL server that quotad starts when it is given none.
// That is its programs, its data directory, its process, its log and its socket, and what is
// left of an earlier one.
//
// It knows no table of quotad: role and database are all that it makes. It
// never runs a server as root, never listens on the network, and never touches
// a PostgreSQL that it did not set up itself.
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
package embedded
