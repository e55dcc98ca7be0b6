// Package document renders invoices for people and spreadsheets: as an HTML page, as a PDF and as CSV. It
// owns the layout of invoices and the format of amounts and dates on them.
//
// The same invoice always yields the same bytes. The package reads no clock, accesses no database and uses no
// HTTP. It computes no amounts: every number comes from the invoice.
//
// File paper.go decides the contents once, and HTML and PDF only draw them. Names and descriptions are
// untrusted. HTML escapes them, CSV prevents spreadsheets from executing them, and the PDF replaces letters
// missing from its fonts with a box.
package document
