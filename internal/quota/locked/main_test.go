package locked

import (
	"testing"

	"quotad/internal/testkit/pgtest"
)

// pgtest.Main also fails when a goroutine outlives the tests.
func TestMain(m *testing.M) { pgtest.Main(m) }
