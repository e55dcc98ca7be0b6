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

// With Go's default, garbage collection took a tenth of the time of a hit, because the live heap is small (the
// caches) and each request leaves garbage. Therefore the heap may grow to nine times its live size, up to a
// memory limit with room for full caches.
const (
	gcPercent        = 800
	memoryBase       = 51 << 20 // bytes, without caches
	memoryOfCustomer = 1200     // bytes of a customer with one meter, its row and a refusal, kept ready

	// readyShare is the divisor of --cache-memory that gives the memory for customers that are kept ready.
	// Packed customers use the rest.
	readyShare = 4
	// leastMemory is the memory of the smallest supported container, bytes (docs/guide/running.md).
	leastMemory = 128 << 20
)

// outsideOfGo is the divisor that gives the part of a container's memory that the collector's limit leaves free.
// The program itself, the kernel's stacks, and memory that is freed a little late use this part.
const outsideOfGo = 10

// tuning contains the input of tuneMemory.
type tuning struct {
	ready     int                              // number of customers that are kept ready
	packed    int64                            // maximum memory of packed customers, bytes
	lookupEnv func(string) (string, bool)      // os.LookupEnv
	container func() (bytes uint64, err error) // the memory of this process' cgroup, memlimit.FromCgroup
	machine   func() (bytes uint64, err error) // memlimit.FromSystem
	log       *slog.Logger
}

// newTuning returns the tuning of a node with these settings, in this process.
func newTuning(s *settings, log *slog.Logger) tuning {
	return tuning{
		ready: s.readyCustomers(), packed: int64(s.packedBytes()), lookupEnv: os.LookupEnv,
		container: memlimit.FromCgroup, machine: memlimit.FromSystem, log: log,
	}
}

// readyCustomers returns the number of customers that are kept ready in their part of --cache-memory.
func (s *settings) readyCustomers() int { return s.CacheMemory << 20 / readyShare / memoryOfCustomer }

// packedBytes returns the part of --cache-memory for packed customers, in bytes.
func (s *settings) packedBytes() int { return s.CacheMemory << 20 / readyShare * (readyShare - 1) }

// memory returns the number of bytes that this node may use, which is at least leastMemory. It is the minimum of
// the machine's memory, the container's memory and $GOMEMLIMIT. memory returns 0 if none of these is known.
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

// tuneMemory configures the garbage collector for a server, unless $GOGC and $GOMEMLIMIT do so. stop ends all
// background work that tuneMemory has started.
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

// most returns the maximum of the collector's limit in bytes. The maximum prevents the kernel from killing a
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

// followMemory raises the limit while the live heap is larger than expected, as with ten thousand connections.
// With a limit that is too small, the collector would use half of the time. followMemory checks the limit after
// each collection, which measures the live heap. It never raises the limit above most.
func followMemory(ctx context.Context, floor, packed, most int64) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	collected := make(chan struct{}, 1)
	for {
		// Nothing refers to the object, so the next collection frees it.
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

// garbage contains a pointer, because several small objects without pointers would be collected as one.
type garbage struct{ _ *garbage }

// memoryLimit returns a limit in bytes that leaves room for half of the live heap without packed customers.
func memoryLimit(floor, packed, living int64) int64 {
	return max(floor, living+max(0, living-packed)/2)
}
