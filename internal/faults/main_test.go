package faults

import (
	"os"
	"testing"
	"time"

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

// steadyWithin is how long a hit waits until it is an outage, at a node that takes a machine that stalls for
// none.
const steadyWithin = 5 * time.Second

// steady are the flags of such a node.
var steady = []string{"--request-timeout=9s", "--decide-within=" + steadyWithin.String()}
