// Package accounts owns the SQL of how customers are billed: accounts, sellers, prices of customers'
// own, the open period, and when the next step of a customer is due.
//
// What a period holds comes of package timeline. Accounts read what it needs, in few statements for
// many customers, and write what it says. They must never compute a boundary or make an invoice.
//
// The row of open_periods is the lock of a customer's billing. Every transaction takes rows in
// the order that migrations/00007_billing.sql says.
package accounts
