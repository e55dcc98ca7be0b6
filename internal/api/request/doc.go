// Package request reads what clients send: bodies, queries, paths and headers. It says what is
// wrong with a request before anything is asked of the engine or of the database.
//
// It must never know a route, a key or a part of the server.
package request
