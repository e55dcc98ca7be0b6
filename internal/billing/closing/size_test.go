package closing

import (
	"testing"
	"time"
)

// Batches become smaller while they take long, and larger while they are short. So transactions
// stay short, whatever the plans and the machine. They do not shrink to a customer each where the
// database is slow to answer: what that costs does not go by their number.
func TestBatchesFollowTheirTime(t *testing.T) {
	for _, c := range []struct {
		each time.Duration // what a customer takes
		want int           // customers of a batch, in the end
	}{{time.Millisecond, batchMost}, {8 * time.Millisecond, 20}, {15 * time.Millisecond, 10}, {100 * time.Millisecond, 5}, {time.Second, 5}} {
		size := batchLeast
		for range 20 {
			size = nextSize(size, time.Duration(size)*c.each)
		}
		if size != c.want {
			t.Errorf("batches have %d customers that take %s each, want %d", size, c.each, c.want)
		}
	}
}
