// Package problem owns the errors of the API: the kinds of problems (kinds.go), the one
// table that turns any error into one of them (table.go), and their documents by RFC 9457.
//
// A kind's type, status and title never change, as clients branch on them. What is not in
// the table is an internal error, whose text never leaves the log, and for a 5xx the client
// is never told what wraps the sentinel.
package problem
