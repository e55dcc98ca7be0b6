// Package store owns the tables of meters, plans, customers, overrides, keys, test clocks and
// shared settings. Its Store is what admins use.
//
// Every write that nodes must hear of is one Write. That is a transaction that takes the next
// change number first, records what changed, and wakes the nodes. So changes become visible in
// the order of their numbers, and no node misses one. Plan versions are immutable;
// customerColumns says which one is in force for a customer.
//
// Plan versions are immutable. customerColumns says which version is in force for a customer.
//
// The package never keeps what it has read. It never changes a counter. It reads a counter only
// to find where a billing period may end.
package store
