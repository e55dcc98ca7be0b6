package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// Collecting garbage took a tenth of the time of a hit: the live heap is small (the caches),
// and each request leaves garbage. So the heap may grow to nine times its live size. A memory
// limit with room for full caches bounds it.
const (
	gcPercent        = 800
	memoryBase       = 51 << 20 // bytes, without caches
	memoryOfCustomer = 1200     // bytes of a customer with one meter, its row and a refusal, kept ready
)

// memoryBeat is how often followMemory adapts the memory limit to the live heap.
const memoryBeat = time.Second

// tuneMemory sets the garbage collector's percentage and memory limit. $GOGC and $GOMEMLIMIT,
// where set, stay in force instead. packed is how many bytes the catalog's packed customers
// may take. stop ends the goroutine that tuneMemory starts.
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

// followMemory raises the memory limit while the live heap and the stacks outgrow floor, as
// with ten thousand connections. Within too small a limit the collector would take half of the
// CPU.
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

// memoryLimit is living and half of what lives besides packed customers, and at least floor.
// All are bytes.
func memoryLimit(floor, packed, living int64) int64 {
	return max(floor, living+max(0, living-packed)/2)
}
