package main

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestTuneMemory(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	env := map[string]string{"GOGC": "50", "GOMEMLIMIT": "1GiB"}
	lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	all := memoryFor(&settings{CacheSize: 1000, CacheMemory: 32})
	packed := func() int64 { return 5 << 20 }
	tuneMemory(t.Context(), all, packed, lookup)()
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("the limit is %d although the environment sets it", got)
	}
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("GOGC is %d although the environment sets it", got)
	}
	clear(env)
	tuneMemory(t.Context(), all, packed, lookup)()
	if got, want := debug.SetMemoryLimit(-1), int64(memoryBase+1000*memoryOfCustomer+48<<20-5<<20); got != want {
		t.Errorf("the limit is %d, not %d", got, want)
	}
	if got := debug.SetGCPercent(100); got != gcPercent {
		t.Errorf("GOGC is %d", got)
	}
	for living, want := range map[uint64]int64{0: 100, 66: 100, 100: 150, 1 << 40: 3 << 39} {
		if got := memoryLimit(100, living); got != want {
			t.Errorf("%d for %d that live, not %d", got, living, want)
		}
	}
}
