package faults

import (
	"os"
	"testing"

	"quotad/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// isLong: the run is a long one, with QUOTAD_TEST_LONG, which has the machine to itself. Only such a
// run holds quotad to times.
func isLong() bool { return os.Getenv("QUOTAD_TEST_LONG") != "" }

// sized is a test's size: short for between two edits, long with QUOTAD_TEST_LONG.
func sized(short, usual, long int) int {
	switch {
	case testing.Short():
		return short
	case isLong():
		return long
	}
	return usual
}

// steady are the flags of a node that takes a machine that stalls for no outage.
var steady = []string{"--request-timeout=9s", "--decide-within=5s"}
