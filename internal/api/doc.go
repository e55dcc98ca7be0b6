// Package api owns quotad's HTTP: the routes in one list (routes.go), requests and answers,
// keys and scopes, and the one table that turns errors into problem documents (problem.go).
// The OpenAPI document is made from the same list and the same Go types that serve the
// requests.
//
// It must never hold rules about limits, plans or time, which are in quota, plans and
// calendar. It must never write SQL.
//
// Admin and read routes are decoded by one helper (decode.go) and answered from typed values.
// The hit routes are the whole load, so they build their answers by appending to pooled
// buffers (answer.go, headers.go).
package api
