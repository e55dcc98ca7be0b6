// Package refusals remembers the last state of counters that refused a hit. Other hits can only have filled such
// a counter further. Therefore the engine may refuse a hit without a statement if the Go model refuses the hit
// on the remembered state.
//
// The package must never admit a hit, and must never use a state for targets of another change number than that
// of the state.
package refusals
