// Package web owns the pages: the portal of one customer, those of admins, and what they are
// drawn with. It has no rules of limits or money of its own. A page asks the API within the
// process for all that it shows. So its numbers, errors and field names are those of the API,
// and what it changes is written down as a request's change is.
//
// The customer of a portal's page comes from the session alone. No page changes anything at a
// GET. Every answer forbids scripts and styles from elsewhere.
//
// To add a page: a template in templates, a method that makes its view, and a line in pages.
package page
