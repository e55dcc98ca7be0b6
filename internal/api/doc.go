// Package api is quotad's HTTP surface: it puts together the rooms that serve routes, and routes
// requests to them.
//
// Rooms do not know each other: hits, imports, usage, admin, drafts, billing and service. Below all
// of them, package serve is what routes share, and package request reads what clients send. Package
// respond writes answers. Package problem turns errors into problems. Package apidoc makes the
// documentation that clients read.
//
// No room may hold rules about limits, plans or time, which are in quota, plans and calendar. None
// may write SQL.
package api
