package main

import (
	"runtime/debug"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"

	"quotad/internal/testkit/pgtest"
)

// testMemory limits the heap of all tests together, in bytes. The collector works more near the limit.
const testMemory = 1 << 30

func TestMain(m *testing.M) {
	// A small heap would be collected all the time, because each of hundreds of nodes leaves garbage.
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(testMemory)
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.PlainBodyDecoder)
	pgtest.Main(m)
}
