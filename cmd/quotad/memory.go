package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// Collecting garbage took a tenth of the time of a hit: what lives is small (the caches)
// and what dies is every request. So the heap may grow to nine times what lives, within a
// limit that has room for full caches.
const (
	gcPercent        = 800
	memoryBase       = 60 << 20 // bytes, without caches
	memoryOfCustomer = 1400     // bytes of a customer with one meter, its row and a refusal, in the caches
)

// memoryBeat is how often the limit is held against what lives.
const memoryBeat = time.Second

// tuneMemory sets the collector for a server, unless its own variables ($GOGC and
// $GOMEMLIMIT) say otherwise. stop ends what it starts.
func tuneMemory(ctx context.Context, cacheSize, cacheMemory int, lookupEnv func(string) (string, bool)) (stop func()) {
	if _, set := lookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if _, set := lookupEnv("GOMEMLIMIT"); set {
		return func() {}
	}
	floor := memoryBase + int64(cacheSize)*memoryOfCustomer + int64(cacheMemory)<<20/2
	debug.SetMemoryLimit(floor)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { followMemory(ctx, floor) })
	return func() {
		cancel()
		running.Wait()
	}
}

// followMemory raises the limit while more lives than it was made for, as with ten thousand
// connections: within a limit that is too small the collector would take half the time.
func followMemory(ctx context.Context, floor int64) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	beat := time.NewTicker(memoryBeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			metrics.Read(sample)
			debug.SetMemoryLimit(memoryLimit(floor, sample[0].Value.Uint64()+sample[1].Value.Uint64()))
		}
	}
}

// memoryLimit leaves room for half of what lives, bytes.
func memoryLimit(floor int64, living uint64) int64 {
	return max(floor, int64(living+living/2))
}
