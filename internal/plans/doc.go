// Package plans owns the types of meters, plans and their versions, customers, overrides and keys. The
// package decides which values are valid, describes the errors of invalid values, and defines the forms
// in which values are stored and shown. The API reports the errors of this package.
//
// The package uses no database, no clock and none of the packages built on it. Package store reads and
// writes its types, package catalog keeps them in memory for hits, and package sweep does the background
// work.
//
// The package never decides a hit, because package model owns limits and their arithmetic.
package plans
