package faults

import (
	"os"
	"testing"

	"quotad/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

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
