// Package serve is what all routes of the API have in common: what a route is, who may call it, how
// its request is measured, checked and answered, and how errors are told.
//
// A room of the API embeds Server, and makes Routes of its methods. Package serve must never know
// one of them.
package serve
