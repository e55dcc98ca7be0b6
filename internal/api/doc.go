// Package api is quotad's HTTP API. It assembles the rooms, which serve routes, and dispatches requests to them.
//
// The rooms are hits, imports, usage, admin, drafts, billing, service and webhooks. They do not know each other.
// They share package serve for the common parts of routes, package request for parsing requests, and package
// respond for writing responses. Package problem converts errors into problems, and package apidoc generates the
// documentation for clients.
//
// A room must contain neither rules about limits, plans or time, which belong to quota, plans and calendar, nor
// SQL.
package api
