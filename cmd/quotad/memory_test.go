package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

func unlimited() (uint64, error) { return 0, memlimit.ErrNoLimit }

func TestTuneMemory(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	env := map[string]string{"GOGC": "50", "GOMEMLIMIT": "1GiB"}
	log := new(pgtest.Log)
	tuned := tuning{
		ready: 1000, packed: 5 << 20, lookupEnv: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		container: unlimited, log: slog.New(slog.NewTextHandler(log, nil)),
	}
	tuneMemory(t.Context(), tuned)()
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("the limit is %d although the environment sets it", got)
	}
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("GOGC is %d although the environment sets it", got)
	}
	clear(env)
	full := int64(memoryBase + 1000*memoryOfCustomer + 5<<20)
	for _, c := range []struct {
		bytes  uint64
		err    error
		want   int64
		warned string
	}{
		{err: memlimit.ErrNoLimit, want: full},
		{err: memlimit.ErrNoCgroup, want: full},
		{err: memlimit.ErrCgroupsNotSupported, want: full},
		{err: errors.New("unread"), want: full, warned: "set GOMEMLIMIT"},
		{bytes: math.MaxUint64, want: full},
		{bytes: 100 << 20, want: full},
		{bytes: 50 << 20, want: 45 << 20, warned: "less memory than full caches take"},
	} {
		before := log.String()
		tuned.container = func() (uint64, error) { return c.bytes, c.err }
		tuneMemory(t.Context(), tuned)()
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("%d bytes, %v: the limit is %d, not %d", c.bytes, c.err, got, c.want)
		}
		if said := strings.TrimPrefix(log.String(), before); !strings.Contains(said, c.warned) || (said == "") != (c.warned == "") {
			t.Errorf("%d bytes, %v: the log says %q", c.bytes, c.err, said)
		}
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

// TestMemoryOfTheNode: the node's memory is the least of what bounds it, and never less than quotad needs.
func TestMemoryOfTheNode(t *testing.T) {
	t.Cleanup(func() { debug.SetMemoryLimit(memoryOfTests) })
	debug.SetMemoryLimit(1 << 30)
	bytes := func(n uint64) func() (uint64, error) { return func() (uint64, error) { return n, nil } }
	for _, c := range []struct {
		machine, container func() (uint64, error)
		limited            bool // by $GOMEMLIMIT, 1 GiB
		want               int64
	}{
		{bytes(4 << 30), unlimited, false, 4 << 30},
		{bytes(4 << 30), bytes(512 << 20), false, 512 << 20},
		{bytes(4 << 30), bytes(512 << 20), true, 512 << 20},
		{bytes(4 << 30), bytes(math.MaxUint64), true, 1 << 30},
		{unlimited, unlimited, true, 1 << 30},
		{unlimited, unlimited, false, 0},
		{bytes(4 << 30), bytes(16 << 20), false, leastMemory},
	} {
		tuned := tuning{machine: c.machine, container: c.container, lookupEnv: func(name string) (string, bool) {
			return "1GiB", c.limited && name == "GOMEMLIMIT"
		}}
		if got := tuned.memory(); got != c.want {
			t.Errorf("the node has %d bytes, not %d", got, c.want)
		}
	}
}

// TestCachesShareTheirMemory: by default as many customers are kept ready as a quarter has room for.
func TestCachesShareTheirMemory(t *testing.T) {
	for mib, want := range map[int][2]int{75: {16_384, 225 << 18}, 1: {218, 3 << 18}} {
		s := settings{CacheMemory: mib}
		if got := [2]int{s.readyCustomers(), s.packedBytes()}; got != want {
			t.Errorf("%d MiB: %d, not %d", mib, got, want)
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
	t.Cleanup(tuneMemory(t.Context(), tuning{ready: 1, lookupEnv: noEnv, container: unlimited, log: slog.New(slog.DiscardHandler)}))
	floor := debug.SetMemoryLimit(-1)
	lives := make([]byte, 2*floor)
	for range 3 {
		runtime.GC()
		testkit.Eventually(t, "the limit follows", func() bool { return debug.SetMemoryLimit(-1) > 2*floor })
		debug.SetMemoryLimit(floor)
	}
	runtime.KeepAlive(lives)
}

// In a container the limit stays within its memory, whatever lives.
func TestMemoryLimitStaysInTheContainer(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	const container = 100 << 20
	t.Cleanup(tuneMemory(t.Context(), tuning{
		ready: 1, lookupEnv: noEnv, log: slog.New(slog.DiscardHandler),
		container: func() (uint64, error) { return container, nil },
	}))
	lives := make([]byte, 2*container)
	for range 3 {
		debug.SetMemoryLimit(math.MaxInt64) // what is followed sets it again
		runtime.GC()
		testkit.Eventually(t, "the limit is the container's", func() bool { return debug.SetMemoryLimit(-1) == container/10*9 })
	}
	runtime.KeepAlive(lives)
}

// A node with the collector's limit of the smallest container stays within the container's memory,
// with many connections, customers and bodies. PostgreSQL runs elsewhere.
func testLeastMemory(t *testing.T, lasts time.Duration, customers int64) {
	t.Helper()
	tuned := tuning{container: func() (uint64, error) { return leastMemory, nil }}
	p := launchProgram(t, testkit.Program(t), []string{fmt.Sprintf("GOMEMLIMIT=%d", tuned.most())}, dataDir(t),
		"--database-url="+pgtest.NewDatabase(t), "--admin-key="+testAdminKey, "--default-plan=basic")
	p.key = testAdminKey
	p.setUp(fixed("l", 1_000_000))
	var callers sync.WaitGroup
	var next, done atomic.Int64
	began := time.Now()
	for range 200 {
		callers.Go(func() { // until the time is over and enough is done
			for time.Since(began) < lasts || done.Load() < 1000 && time.Since(began) < testkit.Patience {
				first := next.Add(1000)
				var hits []string
				for i := range int64(1000) {
					hits = append(hits, hitOf(fmt.Sprintf("customer-%d", (first+i)%customers), "requests", ""))
				}
				if a, err := p.try("POST", "/v1/hits/batch", `{"hits":[`+strings.Join(hits, ",")+`]}`); err == nil && a.status == 200 {
					done.Add(1)
				}
				for range 20 {
					if status, _, err := p.post(hitOf("acme", "requests", "")); err == nil && status == 200 {
						done.Add(1)
					}
				}
			}
		})
	}
	callers.Wait()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var most, file int // KiB
	for line := range strings.Lines(string(status)) {
		name, text, _ := strings.Cut(line, ":")
		switch name {
		case "VmHWM":
			most, err = strconv.Atoi(strings.Fields(text)[0])
		case "RssFile":
			file, err = strconv.Atoi(strings.Fields(text)[0])
		}
	}
	// The kernel takes pages of the program's file back before it ends a process. What it cannot take
	// back is the rest, and its own memory of the connections.
	const kernel = 6
	taken, least := (most-file)>>10, leastMemory>>20
	t.Logf("%d answers, %d customers, at most %d MiB, and %d of the program's file", done.Load(), min(next.Load(), customers), taken, file>>10)
	if err != nil || most == 0 || file == 0 || taken+kernel >= least {
		t.Errorf("it took %d MiB, and %d of the kernel's, of %d: %v", taken, kernel, least, err)
	}
	if done.Load() < 1000 {
		t.Errorf("only %d requests were done", done.Load())
	}
}
