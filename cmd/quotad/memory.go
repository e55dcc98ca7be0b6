package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Collecting garbage took a tenth of the time of a hit: the live heap is small (the caches),
// and each request leaves garbage. So the heap may grow to nine times its live size. A memory
// limit with room for full caches bounds it.
const (
	gcPercent        = 800
	memoryBase       = 51 << 20 // bytes, without caches
	memoryOfCustomer = 1200     // bytes of a customer with one meter, its row and a refusal, kept ready
)

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
// connections: within a limit that is too small the collector would take half the time. It
// does so after each collection, as that is what counts what lives.
func followMemory(ctx context.Context, floor, packed int64) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	collected := make(chan struct{}, 1)
	for {
		// Nothing refers to it, so the next collection takes it.
		runtime.AddCleanup(new(garbage), func(to chan<- struct{}) { to <- struct{}{} }, (chan<- struct{})(collected))
		select {
		case <-ctx.Done():
			return
		case <-collected:
			metrics.Read(sample)
			living := int64(sample[0].Value.Uint64() + sample[1].Value.Uint64())
			debug.SetMemoryLimit(memoryLimit(floor, packed, living))
		}
	}
}

// garbage is no small object without pointers, of which several would be collected as one.
type garbage struct{ _ *garbage }

// memoryLimit leaves room for half of what lives besides packed customers, bytes.
func memoryLimit(floor, packed, living int64) int64 {
	return max(floor, living+max(0, living-packed)/2)
}
