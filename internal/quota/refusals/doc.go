// Package refusals remembers the last state of counters that refused a hit. Other hits can only
// have filled such a counter further. So the engine may refuse a hit that the Go model refuses
// on the remembered state, without a statement.
//
// The package must never admit a hit, and never use a state for targets of another change
// number than it was judged under.
package refusals
