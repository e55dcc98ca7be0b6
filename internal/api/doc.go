// Package api is quotad's HTTP surface: the routes in one list (routes.go), how each request is
// read, checked against its key's scope and decided, and what a node does at once.
//
// It holds no rules of its own about limits, plans or time: those are in quota, plans and
// calendar, and it never writes SQL. What an answer looks like is for package respond, which
// error is which problem for package problem, and what clients read of it all for apidoc.
//
// Requests to admin and read routes are decoded by one helper (decode.go) and answered from
// typed values (serve.go). The hit routes read by hand what nearly all clients write
// (plain.go), and append their answers, because they are the whole load.
package api
