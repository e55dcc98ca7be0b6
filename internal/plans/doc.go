// Package plans owns the words of meters, plans and their versions, customers, overrides
// and keys, and their rules: what each may be, what is wrong with one that may not be, and
// the form in which it is stored and shown. Its errors are those that the API tells.
//
// It knows no database, no clock and no other room. What reads and writes its words is
// package store, what remembers them for hits is package catalog, and what is done behind
// requests is package sweep.
//
// It never decides a hit: limits and their arithmetic are package quota's.
package plans
