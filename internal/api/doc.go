// Package api is quotad's HTTP surface. The routes are in one list (routes.go). The package reads
// each request, checks its key's scope, and decides what is asked.
//
// What an answer looks like is for package respond, which error is which problem for package
// problem, and what clients read of the API for package apidoc.
//
// Requests to admin and read routes are decoded by one helper (decode.go) and answered from
// typed values (serve.go). The hit routes are the whole load. They read by hand what nearly all
// clients write (plain.go), and append their answers.
//
// The package must never hold rules about limits, plans or time, which are in quota, plans and
// calendar. It must never write SQL.
package api
