package main

import (
	"os"
	"testing"
	"time"
)

func TestProc(t *testing.T) {
	t.Parallel()
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; { // some ticks of work
	}
	if used, ok := cpuTime(os.Getpid()); !ok || used <= 0 {
		t.Errorf("%s %v", used, ok)
	}
	if now, most, ok := resident(os.Getpid()); !ok || now <= 0 || most < now {
		t.Errorf("%d %d %v", now, most, ok)
	}
	if _, ok := cpuTime(1 << 30); ok {
		t.Error("there is no such process")
	}
	if ownCPU() <= 0 {
		t.Error("the test has used no time")
	}
}

func TestKilobytes(t *testing.T) {
	t.Parallel()
	const text = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\n"
	if got := kilobytes(text, "VmHWM:"); got != 2048<<10 {
		t.Errorf("%d", got)
	}
	if got := kilobytes(text, "VmPeak:"); got != 0 {
		t.Errorf("%d", got)
	}
}

func TestFlushCost(t *testing.T) {
	t.Parallel()
	if ms, err := flushCost(t.TempDir()); err != nil || ms <= 0 {
		t.Errorf("%v %v", ms, err)
	}
}

func TestField(t *testing.T) {
	t.Parallel()
	const text = "processor\t: 0\nmodel name\t: Some CPU: fast\nmodel name\t: other\n"
	if got := field(text, "model name"); got != "Some CPU: fast" {
		t.Errorf("%q", got)
	}
	if got := field(text, "nothing"); got != "" {
		t.Errorf("%q", got)
	}
}
