package sweep

import (
	"testing"

	"quotad/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
