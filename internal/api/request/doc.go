// Package request parses the bodies, queries, paths and headers of requests. It reports the faults of a request
// before the engine or the database is involved.
//
// The package must never know a route, a key or a part of the server.
package request
