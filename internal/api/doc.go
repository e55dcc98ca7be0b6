// Package api is quotad's HTTP surface: the routes in one list (routes.go), requests
// and answers, keys and scopes, and the one table that turns errors into problem
// documents (problem.go).
//
// It holds no rules of its own about limits, plans or time: those are in quota, plans
// and calendar, and it never writes SQL. The OpenAPI document is made from the same
// list and the same Go types that serve the requests.
//
// Requests to admin and read routes are decoded by one helper (decode.go) and answered
// from typed values. The hit routes build their answers by appending to pooled buffers
// (answer.go, headers.go), because they are the whole load.
package api
