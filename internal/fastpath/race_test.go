//go:build race

package fastpath

// The race detector empties pools now and then.
const maxAllocations = 12
