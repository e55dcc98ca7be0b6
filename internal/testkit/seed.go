package testkit

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Seed is the seed of a random test. It is fixed by the test's name, so that two runs draw the
// same. With QUOTAD_SEED=new it is a new one, and with QUOTAD_SEED=n it is n. A failed test says
// how to repeat it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed, err := seedOf(os.Getenv("QUOTAD_SEED"), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	sayAgain(t, seed)
	return seed
}

// EachSeed runs a random test once for each seed: those that failed once, and the one of Seed. With
// QUOTAD_SEED=n it runs with n alone.
func EachSeed(t *testing.T, failed []uint64, test func(t *testing.T, seed uint64)) {
	t.Helper()
	given := os.Getenv("QUOTAD_SEED")
	seed, err := seedOf(given, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	seeds := []uint64{seed}
	if given == "" {
		seeds = append(seeds, failed...)
	}
	for _, seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			sayAgain(t, seed)
			test(t, seed)
		})
	}
}

// seedOf is the seed that QUOTAD_SEED asks for.
func seedOf(given, name string) (uint64, error) {
	switch given {
	case "":
		hash := fnv.New64a()
		hash.Write([]byte(name))
		return hash.Sum64(), nil
	case "new":
		return rand.Uint64(), nil //nolint:gosec // it is no secret
	}
	seed, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("QUOTAD_SEED must be a number below 2^64, or new: %w", err)
	}
	return seed, nil
}

// sayAgain has a test say how to repeat it when it fails.
func sayAgain(t testing.TB, seed uint64) {
	t.Cleanup(func() {
		if t.Failed() {
			name, _, _ := strings.Cut(t.Name(), "/")
			t.Logf("repeat it with QUOTAD_SEED=%d, -run '^%s$'", seed, name)
		}
	})
}
