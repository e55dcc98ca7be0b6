// Package respond writes the headers and bodies of responses. It appends decisions, their limits and the quota
// headers to pooled buffers. These responses cause nearly all of the load, so nothing here uses reflection, and
// the types in bodies.go are only for schemas and tests.
//
// The package makes no decisions and reads no requests. It never responds with an error, which is the task of
// package problem.
package respond
