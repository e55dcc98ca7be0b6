// Package apidoc owns the documentation of the API for clients: the OpenAPI 3.1 document and the page /docs.
// Both are generated from one list of operations with an example for each, and from the Go types that serve
// them.
//
// The package serves no requests and must never know the server. It describes only the operations in its list.
package apidoc
