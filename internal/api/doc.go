// Package api is quotad's HTTP surface. The routes are in one list (routes.go). The package
// reads each request, checks its key's scope, and decides what is asked.
//
// Package respond writes answers. Package problem turns errors into problems. Package apidoc
// makes the documentation that clients read.
//
// Requests to admin and read routes are decoded by one helper (decode.go) and answered from
// typed values (serve.go). The hit routes are the whole load. They have a decoder of their own
// for the form that nearly all clients write (plain.go), and append their answers to buffers.
//
// The package must never hold rules about limits, plans or time, which are in quota, plans and
// calendar. It must never write SQL.
package api
