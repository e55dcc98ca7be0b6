package request

import (
	"testing"

	"quotad/internal/api/respond"
)

// A buffer grows by what has come, and not by what was promised.
func TestNextSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ have, promised, limit, want int }{
		{0, -1, MaxBody, respond.Free},
		{0, 10, MaxBody, respond.Free},
		{0, MaxBatchBody, MaxBatchBody, respond.Free},
		{respond.Free, 0, MaxBody, 4 * respond.Free},
		{respond.Free, respond.Free, MaxBody, respond.Free + 1},
		{respond.Free, respond.Free + 1, MaxBody, respond.Free + 2},
		{respond.Free, MaxBody, MaxBody, 4 * respond.Free},
		{MaxBody, -1, MaxBody, MaxBody + 1},
		{MaxBody, MaxBody, MaxBody, MaxBody + 1},
	} {
		if got := nextSize(c.have, c.promised, c.limit); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
