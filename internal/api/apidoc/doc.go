// Package apidoc owns what clients read of the API: the OpenAPI 3.1 document, and the page of
// /docs. Both are made from one list of operations, with an example of each, and from the Go
// types that serve them.
//
// It serves no request, and never knows who does. Nothing is described here that is not in
// the list that it is given.
package apidoc
