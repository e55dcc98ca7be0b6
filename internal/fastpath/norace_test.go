//go:build !race

package fastpath

// Two are of the header that varies, and one is of the handler here.
const maxAllocations = 4
