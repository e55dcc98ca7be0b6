package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestTuneMemory(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	env := map[string]string{"GOGC": "50", "GOMEMLIMIT": "1GiB"}
	lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	tuneMemory(t.Context(), 1000, 5<<20, lookup)()
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("the limit is %d although the environment sets it", got)
	}
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("GOGC is %d although the environment sets it", got)
	}
	clear(env)
	tuneMemory(t.Context(), 1000, 5<<20, lookup)()
	if got, want := debug.SetMemoryLimit(-1), int64(memoryBase+1000*memoryOfCustomer+5<<20); got != want {
		t.Errorf("the limit is %d, not %d", got, want)
	}
	if got := debug.SetGCPercent(100); got != gcPercent {
		t.Errorf("GOGC is %d", got)
	}
	for living, want := range map[int64]int64{0: 100, 60: 100, 100: 130, 1<<40 + 40: 3<<39 + 40} {
		if got := memoryLimit(100, 40, living); got != want {
			t.Errorf("%d for %d that live, not %d", got, living, want)
		}
	}
}

// The limit follows what lives with each collection, and so before the next one has to work
// within a limit that is too small.
func TestMemoryLimitFollowsAtOnce(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	t.Cleanup(tuneMemory(t.Context(), 1, 0, func(string) (string, bool) { return "", false }))
	floor := debug.SetMemoryLimit(-1)
	lives := make([]byte, 2*floor)
	for range 3 {
		runtime.GC()
		eventually(t, 500*time.Millisecond, "the limit follows", func() bool { return debug.SetMemoryLimit(-1) > 2*floor })
		debug.SetMemoryLimit(floor)
	}
	runtime.KeepAlive(lives)
}
