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
	memoryBase       = 51 << 20 // bytes, without caches
	memoryOfCustomer = 1200     // bytes of a customer with one meter, its row and a refusal, kept ready
)

// memoryBeat is how often the limit is held against what lives.
const memoryBeat = time.Second

// tuneMemory sets the collector for a server, unless its own variables ($GOGC and
// $GOMEMLIMIT) say otherwise. packed is what packed customers may take, bytes. stop ends what
// it starts.
func tuneMemory(ctx context.Context, cacheSize int, packed int64, lookupEnv func(string) (string, bool)) (stop func()) {
	if _, set := lookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if _, set := lookupEnv("GOMEMLIMIT"); set {
		return func() {}
	}
	floor := memoryBase + int64(cacheSize)*memoryOfCustomer + packed
	debug.SetMemoryLimit(floor)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { followMemory(ctx, floor, packed) })
	return func() {
		cancel()
		running.Wait()
	}
}

// followMemory raises the limit while more lives than it was made for, as with ten thousand
// connections: within a limit that is too small the collector would take half the time.
func followMemory(ctx context.Context, floor, packed int64) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	beat := time.NewTicker(memoryBeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			metrics.Read(sample)
			living := int64(sample[0].Value.Uint64() + sample[1].Value.Uint64())
			debug.SetMemoryLimit(memoryLimit(floor, packed, living))
		}
	}
}

// memoryLimit leaves room for half of what lives besides packed customers, bytes.
func memoryLimit(floor, packed, living int64) int64 {
	return max(floor, living+max(0, living-packed)/2)
}
