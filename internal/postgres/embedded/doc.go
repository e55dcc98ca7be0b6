// Package embedded owns the private PostgreSQL server that quotad starts if no external server is
// specified. It owns the server's programs, data directory, process, log and socket, and the
// remains of an earlier server.
//
// It knows no table of quotad and creates only the role and the database. It never runs a server
// as root, never listens on the network, and never changes a PostgreSQL that it did not set up.
//
// The directory of an embedded server:
//
//	quotad.lock      held (flock) by the quotad that owns the directory
//	pgdata/          PostgreSQL's data, owned by the user the server runs as
//	socket-dir       names the socket's directory when that is elsewhere
//	pgdata.init-*/   an initdb under way, or one that was cut off
//	run/             the socket, 0700; under the temp directory when the path
//	                 would be too long for a socket
//	postgresql.conf, pg_hba.conf   rewritten at every start
//	custom.conf      the operator's own settings, which override postgresql.conf
//
// All entries except pgdata and run belong to quotad's own user. Therefore the server's user cannot
// create symbolic links that a quotad running as root would follow.
package embedded
