package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"

	"quotad/internal/testkit/pgtest"
)

// memoryOfTests is the collector's memory limit while tests run, in bytes. The limit that a node sets is made for
// one node. With several nodes and clients in one process the collector would take a quarter of the processor time.
const memoryOfTests = 3 << 30

func TestMain(m *testing.M) {
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.PlainBodyDecoder)
	debug.SetGCPercent(gcPercent) // as a node does
	debug.SetMemoryLimit(memoryOfTests)
	if err := os.Setenv("GOMEMLIMIT", strconv.Itoa(memoryOfTests)); err != nil { // so nodes set no limit of their own
		panic(err)
	}
	pgtest.Main(m)
}

// cleanEnv returns the environment that the tests were started in, without settings of quotad and without a memory limit.
func cleanEnv() (env []string) {
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "QUOTAD_") && !strings.HasPrefix(entry, "GOMEMLIMIT=") {
			env = append(env, entry)
		}
	}
	return env
}
