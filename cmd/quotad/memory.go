package main

import "runtime/debug"

// Collecting garbage took a tenth of the time of a hit: what lives is small (the caches)
// and what dies is every request. So the heap may grow to five times what lives, within a
// limit that leaves room for full caches.
const (
	gcPercent        = 400
	memoryBase       = 192 << 20 // bytes, without caches
	memoryOfCustomer = 2500      // bytes of a customer and a refusal in the caches, with slack
)

// tuneMemory sets the collector for a server, unless its own variables ($GOGC and
// $GOMEMLIMIT) say otherwise.
func tuneMemory(cacheSize int, lookupEnv func(string) (string, bool)) {
	if _, set := lookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if _, set := lookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memoryBase + int64(cacheSize)*memoryOfCustomer)
	}
}
