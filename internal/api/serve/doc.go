// Package serve contains the common parts of all routes of the API: the definition of a route, authorization,
// metrics, checks of requests, responses, and the report of errors.
//
// Each room of the API embeds Server and creates Routes from its methods. Package serve must never know a room.
package serve
