// Package client owns the shared types of the API and its clients: the bodies of requests and answers, and
// problem documents. A Client sends the requests.
//
// The package imports the standard library only, and does not depend on quotad's internals. The tags of its
// types are the source of the OpenAPI document.
//
// The calls are in the same package as their types, so that a caller needs one package. Pure packages of quotad
// that use the types therefore link net/http without calling it.
package client
