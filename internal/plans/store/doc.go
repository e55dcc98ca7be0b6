// Package store owns the tables of meters, plans, customers, overrides, keys, test clocks and shared
// settings. Admins use its Store.
//
// Every write that nodes must learn of is one Write. A Write is a transaction that first takes the next
// change number, then records the change and wakes the nodes. Changes therefore become visible in the
// order of their numbers, and no node misses a change.
//
// Plan versions are immutable. customerColumns defines the version that is in force for a customer.
//
// The package caches nothing and never changes a counter. It reads a counter only to find where a billing
// period may end.
package store
