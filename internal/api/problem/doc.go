// Package problem owns the errors of the API: the kinds of problems (kinds.go), and the one
// table that turns any error into one of them (table.go). Their documents are RFC 9457's.
//
// A kind's type, status and title never change, as clients branch on them. What is not in
// the table is an internal error, whose text never leaves the log. Of a 5xx the client is
// never told what wraps the sentinel.
package problem
