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
	memoryBase       = 32 << 20 // bytes, without caches
	memoryOfCustomer = 1200     // bytes of a customer with one meter, its row and a refusal, kept ready
)

// memoryFor is what a node may take, bytes, but for programs and connections: its packed
// customers' index is half of them.
func memoryFor(s *settings) int64 {
	packed := int64(s.CacheMemory) << 20
	return memoryBase + int64(s.CacheSize)*memoryOfCustomer + packed + packed/2
}

// memoryBeat is how often the limit is held against what lives.
const memoryBeat = time.Second

// tuneMemory sets the collector for a server, unless its own variables ($GOGC and
// $GOMEMLIMIT) say otherwise: the heap may have what there is in all, but for what is outside
// of it, which packed tells. stop ends what it starts.
func tuneMemory(ctx context.Context, all int64, packed func() int64, lookupEnv func(string) (string, bool)) (stop func()) {
	if _, set := lookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if _, set := lookupEnv("GOMEMLIMIT"); set {
		return func() {}
	}
	debug.SetMemoryLimit(all - packed())
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { followMemory(ctx, all, packed) })
	return func() {
		cancel()
		running.Wait()
	}
}

// followMemory keeps the limit at what is left beside packed customers, and raises it while
// more lives than it was made for, as with ten thousand connections: within a limit that is
// too small the collector would take half the time.
func followMemory(ctx context.Context, all int64, packed func() int64) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	beat := time.NewTicker(memoryBeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			metrics.Read(sample)
			debug.SetMemoryLimit(memoryLimit(all-packed(), sample[0].Value.Uint64()+sample[1].Value.Uint64()))
		}
	}
}

// memoryLimit leaves room for half of what lives, bytes.
func memoryLimit(left int64, living uint64) int64 {
	return max(left, int64(living+living/2))
}
