// Package document shows invoices to people and to spreadsheets: as a page of HTML, as a PDF and
// as CSV. It owns how an invoice looks and how amounts and dates are written on it.
//
// The same invoice makes the same bytes. The package reads no clock, reaches no database and
// speaks no HTTP. It computes no amount: every number is one of the invoice's own.
//
// What is on the paper is decided once, in paper.go. HTML and PDF only draw it. Names and
// descriptions are written by strangers. HTML escapes them, CSV keeps spreadsheets from running
// them, and the PDF shows a box for letters that its font lacks.
package document
