package main

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Garbage collection took a tenth of the time of a hit, because the live heap (the caches) is small and each
// request leaves garbage. Therefore the heap may grow to nine times its live size. A memory limit with room for
// full caches bounds the growth.
const (
	gcPercent        = 800
	memoryBase       = 51 << 20 // bytes, without caches
	memoryOfCustomer = 1200     // bytes of a customer kept ready, with one meter, its row and a refusal

	// readyShare divides --cache-memory: customers kept ready use 1/readyShare of the memory, and packed
	// customers use the rest.
	readyShare = 4
	// leastMemory is the memory of the smallest supported container, in bytes (docs/guide/running.md).
	leastMemory = 128 << 20
)

// outsideOfGo is 10, because a tenth of a container's memory is kept out of the collector's limit. That tenth is
// for memory that the limit does not count: the program itself, kernel stacks, and memory that is freed a little
// late.
const outsideOfGo = 10

// tuning contains the inputs of tuneMemory.
type tuning struct {
	ready     int                              // the number of customers kept ready
	packed    int64                            // memory for packed customers, bytes
	lookupEnv func(string) (string, bool)      // os.LookupEnv
	container func() (bytes uint64, err error) // the memory limit of this process's cgroup, memlimit.FromCgroup
	machine   func() (bytes uint64, err error) // memlimit.FromSystem
	log       *slog.Logger
}

// newTuning returns the tuning of a node with these settings in this process.
func newTuning(s *settings, log *slog.Logger) tuning {
	return tuning{
		ready: s.readyCustomers(), packed: int64(s.packedBytes()), lookupEnv: os.LookupEnv,
		container: memlimit.FromCgroup, machine: memlimit.FromSystem, log: log,
	}
}

// readyCustomers returns the number of customers for which their share of --cache-memory has room to be kept
// ready.
func (s *settings) readyCustomers() int { return s.CacheMemory << 20 / readyShare / memoryOfCustomer }

// packedBytes returns the bytes of --cache-memory for packed customers.
func (s *settings) packedBytes() int { return s.CacheMemory << 20 / readyShare * (readyShare - 1) }

// memory returns the bytes that this node may use, which is the minimum of the machine's memory, the container's
// and $GOMEMLIMIT, but at least leastMemory. It returns 0 if none of the three is known.
func (t tuning) memory() int64 {
	known := int64(math.MaxInt64)
	for _, read := range []func() (uint64, error){t.machine, t.container} {
		if bytes, err := read(); err == nil {
			known = int64(min(bytes, uint64(known)))
		}
	}
	if _, set := t.lookupEnv("GOMEMLIMIT"); set {
		known = min(known, debug.SetMemoryLimit(-1))
	}
	if known == math.MaxInt64 {
		return 0
	}
	return max(known, leastMemory)
}

// tuneMemory configures the garbage collector for a server, unless $GOGC and $GOMEMLIMIT do so. stop ends the
// goroutine that tuneMemory starts.
func tuneMemory(ctx context.Context, t tuning) (stop func()) {
	if _, set := t.lookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	if _, set := t.lookupEnv("GOMEMLIMIT"); set {
		return func() {}
	}
	floor := memoryBase + int64(t.ready)*memoryOfCustomer + t.packed
	most := t.most()
	if most < floor {
		t.log.Warn("the container has less memory than full caches take, so the collector will work more: give it more, or lower --cache-memory",
			"limit_mib", most>>20, "full_caches_mib", floor>>20)
	}
	debug.SetMemoryLimit(min(most, floor))
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { followMemory(ctx, floor, t.packed, most) })
	return func() {
		cancel()
		running.Wait()
	}
}

// most returns the number of bytes to which the collector's limit may grow, so that the kernel does not kill the
// process in a container with limited memory.
func (t tuning) most() int64 {
	container, err := t.container()
	switch {
	case errors.Is(err, memlimit.ErrNoLimit), errors.Is(err, memlimit.ErrNoCgroup), errors.Is(err, memlimit.ErrCgroupsNotSupported):
		return math.MaxInt64
	case err != nil:
		t.log.Warn("the memory limit of this container cannot be read: set GOMEMLIMIT, where there is one", "error", err)
		return math.MaxInt64
	}
	return int64(min(container, math.MaxInt64)) / outsideOfGo * (outsideOfGo - 1)
}

// followMemory raises the limit if more memory is live than the limit was made for, as with ten thousand
// connections. If the limit were too small, garbage collection would take half the time. followMemory adjusts
// the limit after each collection, because a collection measures the live memory. The limit never exceeds most.
func followMemory(ctx context.Context, floor, packed, most int64) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	collected := make(chan struct{}, 1)
	for {
		// Nothing refers to this object, so the next collection frees it and runs its cleanup.
		runtime.AddCleanup(new(garbage), func(to chan<- struct{}) { to <- struct{}{} }, (chan<- struct{})(collected))
		select {
		case <-ctx.Done():
			return
		case <-collected:
			metrics.Read(sample)
			living := int64(sample[0].Value.Uint64() + sample[1].Value.Uint64())
			debug.SetMemoryLimit(min(most, memoryLimit(floor, packed, living)))
		}
	}
}

// garbage contains a pointer, because Go allocates small objects without pointers in groups and frees a group
// only as a whole.
type garbage struct{ _ *garbage }

// memoryLimit returns the limit in bytes. It leaves room for half of the live memory that packed customers do
// not use.
func memoryLimit(floor, packed, living int64) int64 {
	return max(floor, living+max(0, living-packed)/2)
}
