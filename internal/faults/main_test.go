package faults

import (
	"os"
	"strconv"
	"testing"
	"time"

	"quotad/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// seedOf is the seed of a test's run: a new one each time, or $QUOTAD_TEST_SEED. A failure
// prints it.
func seedOf(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("QUOTAD_TEST_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("QUOTAD_TEST_SEED: %v", err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			long := ""
			if os.Getenv("QUOTAD_TEST_LONG") != "" {
				long = "QUOTAD_TEST_LONG=1 "
			}
			t.Logf("seed %d; again: %sQUOTAD_TEST_SEED=%d go test -buildvcs=false -timeout 1h -short=%t -run '%s' ./internal/faults",
				seed, long, seed, testing.Short(), t.Name())
		}
	})
	return seed
}

// sized is a test's size: short for between two edits, long with QUOTAD_TEST_LONG.
func sized(short, usual, long int) int {
	switch {
	case testing.Short():
		return short
	case os.Getenv("QUOTAD_TEST_LONG") != "":
		return long
	}
	return usual
}

// eventually polls until ok, and fails the test when that takes longer than limit.
func eventually(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}
