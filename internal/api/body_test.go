package api

import (
	"testing"

	"quotad/internal/api/respond"
)

// A buffer grows by what has come, and not by what was promised.
func TestNextSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ have, promised, limit, want int }{
		{0, -1, maxBody, respond.Free},
		{0, 10, maxBody, respond.Free},
		{0, maxBatchBody, maxBatchBody, respond.Free},
		{respond.Free, 0, maxBody, 4 * respond.Free},
		{respond.Free, respond.Free, maxBody, respond.Free + 1},
		{respond.Free, respond.Free + 1, maxBody, respond.Free + 2},
		{respond.Free, maxBody, maxBody, 4 * respond.Free},
		{maxBody, -1, maxBody, maxBody + 1},
		{maxBody, maxBody, maxBody, maxBody + 1},
	} {
		if got := nextSize(c.have, c.promised, c.limit); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
