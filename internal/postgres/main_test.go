package postgres_test

import (
	"os"
	"testing"

	"quotad/internal/postgres/pgtest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperEnv); dir != "" {
		os.Exit(helper(dir))
	}
	pgtest.Main(m)
}
