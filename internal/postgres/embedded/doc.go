// Package embedded owns the private PostgreSQL server that quotad starts if no external database
// is configured. It owns the server's programs, data directory, process, log and socket, and the
// cleanup after an earlier server.
//
// The package does not know quotad's tables: it creates only the role and the database. It never
// runs a server as root, never listens on the network, and never touches a PostgreSQL server that
// it did not set up.
//
// The directory of an embedded server:
//
//	quotad.lock      locked (flock) by the quotad that owns the directory
//	pgdata/          PostgreSQL's data, owned by the user who runs the server
//	socket-dir       contains the path of the socket's directory if it is elsewhere
//	pgdata.init-*/   an initdb in progress, or an interrupted one
//	run/             the socket's directory, mode 0700; it is under the temp
//	                 directory if the path would be too long for a socket
//	postgresql.conf, pg_hba.conf   rewritten at every start
//	custom.conf      the operator's own settings; overrides postgresql.conf
//
// Everything except pgdata and run belongs to quotad's own user. Therefore the server's user cannot
// create symbolic links that a quotad running as root would follow.
package embedded
