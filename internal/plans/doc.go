// Package plans owns meters, plans and their versions, customers and keys: their rules,
// their tables, and the memory that answers, without a statement, which limits are in
// force for a customer on a meter.
//
// It never touches a counter and never decides a hit.
package plans
