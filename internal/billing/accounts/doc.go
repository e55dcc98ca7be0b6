// Package accounts owns the SQL that defines how customers are billed: accounts, sellers, customers' own
// prices, the open period, and the instant of a customer's next step.
//
// Package timeline computes the contents of a period. Package accounts reads the input for timeline, with few
// statements for many customers, and writes the result. It must never compute a boundary or create an
// invoice.
//
// The row of open_periods is the lock of a customer's billing. Every transaction locks rows in the order that
// migrations/00007_billing.sql specifies.
package accounts
