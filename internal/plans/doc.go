// Package plans owns the types of meters, plans and their versions, customers, overrides and
// keys. It says which values are valid, what is wrong with others, and in which form each is
// stored and shown. Its errors are those that the API reports.
//
// It knows no database, no clock and no other room. Package store reads and writes its types.
// Package catalog remembers them for hits. Package sweep does the work in the background.
//
// It never decides a hit: limits and their arithmetic are those of package model.
package plans
