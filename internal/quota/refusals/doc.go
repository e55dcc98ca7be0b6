// Package refusals remembers the last state of counters that refused a hit. Others can only
// have filled such a counter further. So a hit that the Go model refuses on that state is
// refused rightly, without a statement.
//
// The package must never admit a hit, and never use a state for targets of another change
// number than it was judged under.
package refusals
