// Package problem owns the errors of the API: the kinds of problems (kinds.go), and the only table that converts
// errors into problems (table.go). Problem documents follow RFC 9457.
//
// The type, status and title of a kind never change, because clients branch on them. An error that is not in the
// table is an internal error, whose text appears only in the log. For a 5xx, the client never sees the text that
// wraps the sentinel error.
package problem
