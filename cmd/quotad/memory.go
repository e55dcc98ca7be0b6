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

// Collecting garbage took a tenth of the time of a hit: the live heap is small (the caches),
// and each request leaves garbage. So the heap may grow to nine times its live size. A memory
// limit with room for full caches bounds it.
const (
	gcPercent        = 800
	memoryBase       = 51 << 20 // bytes, without caches
	memoryOfCustomer = 1200     // bytes of a customer with one meter, its row and a refusal, kept ready

	// readyShare is the part of --cache-memory that customers kept ready take. Packed customers take the rest.
	readyShare = 4
	// leastMemory is the memory of the smallest container that quotad is said to run in, bytes
	// (docs/guide/running.md).
	leastMemory = 128 << 20
)

// outsideOfGo is the tenth of a container's memory that the collector's limit leaves to what it
// does not count: the program itself, stacks of the kernel's, and what is freed a little late.
const outsideOfGo = 10

// tuning is what tuneMemory goes by.
type tuning struct {
	ready     int                              // customers that are kept ready
	packed    int64                            // what packed customers may take, bytes
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

// readyCustomers returns how many customers are kept ready in their share of --cache-memory.
func (s *settings) readyCustomers() int { return s.CacheMemory << 20 / readyShare / memoryOfCustomer }

// packedBytes returns how many bytes of --cache-memory packed customers take.
func (s *settings) packedBytes() int { return s.CacheMemory << 20 / readyShare * (readyShare - 1) }

// memory returns how many bytes this node may use, at least leastMemory: the least of the machine's
// memory, the container's and $GOMEMLIMIT. It returns 0 if none of them is known.
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

// tuneMemory sets the collector for a server, unless its own variables ($GOGC and
// $GOMEMLIMIT) say otherwise. stop ends what it starts.
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

// most is how many bytes the collector's limit may grow to, so that the kernel does not kill a
// process in a container whose memory is limited.
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

// followMemory raises the limit while more lives than it was made for, as with ten thousand
// connections: within a limit that is too small the collector would take half the time. It
// does so after each collection, as that is what counts what lives. It never raises it beyond most.
func followMemory(ctx context.Context, floor, packed, most int64) {
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
			debug.SetMemoryLimit(min(most, memoryLimit(floor, packed, living)))
		}
	}
}

// garbage is no small object without pointers, of which several would be collected as one.
type garbage struct{ _ *garbage }

// memoryLimit leaves room for half of what lives besides packed customers, bytes.
func memoryLimit(floor, packed, living int64) int64 {
	return max(floor, living+max(0, living-packed)/2)
}
