package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestProc(t *testing.T) {
	t.Parallel()
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; { // some ticks of work
	}
	for _, read := range []func(int) (time.Duration, bool){ownTime, familyTime} {
		if used, ok := read(os.Getpid()); !ok || used <= 0 {
			t.Errorf("%s %v", used, ok)
		}
		if _, ok := read(1 << 30); ok {
			t.Error("there is no such process")
		}
	}
	if now, most, ok := resident(os.Getpid()); !ok || now <= 0 || most < now {
		t.Errorf("%d %d %v", now, most, ok)
	}
	if ownCPU() <= 0 {
		t.Error("the test has used no time")
	}
}

// The server is a child of quotad's, and must not be counted as quotad, too.
func TestTimeOfChildren(t *testing.T) {
	t.Parallel()
	c, err := spawn("sh", exec.Command("sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"))
	if err != nil {
		t.Fatal(err)
	}
	<-c.ended
	family, _ := familyTime(os.Getpid()) // first: what the test itself uses meanwhile is not the child's
	own, _ := ownTime(os.Getpid())
	if used := c.cpu(); used < 5*procTick || family-own < used/2 { // the kernel counts in ticks
		t.Errorf("a child used %s of %s, of which %s without it", used, family, own)
	}
}

// The rows' load on many customers counts, where it made quotad larger than hitting each
// did; what other rows did does not.
func TestLookAgain(t *testing.T) {
	t.Parallel()
	c, err := spawn("sleep", exec.Command("sleep", "60"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.stop() }() // it has nothing to say
	b := &bench{out: io.Discard, service: &service{nodes: []*node{{child: c}}}}
	many := &row{name: millionRow, set: "million"}
	b.lookAgain(many) // nothing was filled: nothing to look at
	b.report.Memory = &memory{Many: footprint{Customers: sets["million"].customers}}
	b.lookAgain(mainRowOf())
	b.lookAgain(&row{set: "million", shell: backendUpdate})
	if got := b.report.Memory.Loaded; got != (footprint{}) {
		t.Errorf("of another row: %+v", got)
	}
	b.lookAgain(many)
	got := b.report.Memory.Loaded
	if value, known := memoryMeasure.of(&b.report, millionRow); got.Peak <= 0 || got.Peak < got.Now || got.Customers != 1_000_000 || known {
		t.Errorf("%+v, measured %v %v", got, value, known) // without the fill's own figure nothing is known
	}
	b.report.Memory.Many.Peak = got.Peak / 2
	if value, known := memoryMeasure.of(&b.report, millionRow); value != got.Peak || !known {
		t.Errorf("%v %v, not %v", value, known, got.Peak)
	}
}

func TestFlushCost(t *testing.T) {
	t.Parallel()
	if ms, err := flushCost(t.TempDir()); err != nil || ms <= 0 {
		t.Errorf("%v %v", ms, err)
	}
}

// The processor's name is that of the kernel, where the kernel has one.
func TestCPUModel(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\nmodel name\t: ")
	want, _, _ := strings.Cut(rest, "\n")
	if got := cpuModel(); ok && got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
