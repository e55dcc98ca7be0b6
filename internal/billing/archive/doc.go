// Package archive moves old months of usage and adjustments out of their tables when no bill or correction can
// need them any more. The package decides which months these are, and the order of the steps. The engine
// performs the steps that touch hot tables. The package must never archive data that an invoice may need.
package archive
