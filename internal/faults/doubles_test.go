package faults

import (
	"testing"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// TestWithoutIDsDoublesAreSeen: the same clients, nodes and comparison, but hits and
// batches without ids, sent again when their answer is lost. Some are charged twice, and
// the comparison must say so. Without faults there is nothing to say.
func TestWithoutIDsDoublesAreSeen(t *testing.T) {
	for name, odds := range map[string]float64{"without faults": 0, "with lost answers": 0.1} {
		t.Run(name, func(t *testing.T) {
			seed := testkit.Seed(t)
			r := &run{
				seed: seed, clients: 8, operations: sized(300, 300, 5000),
				cluster: newCluster(t, seed, pgtest.NewDatabase(t), 2, cutUnanswered, cutWithinAnswer),
			}
			r.cluster.begin(odds, 0)
			r.work(t, nil)
			r.cluster.rest()
			wrong := r.differences(t, true)
			if odds == 0 {
				show(t, wrong)
				return
			}
			r.report(t)
			surplus := r.surplus(t)
			t.Logf("%d answers lost; %d units too many, %d differences", r.tally.lost.Load(), surplus, len(wrong))
			if surplus <= 0 || len(wrong) == 0 {
				t.Error("hits were charged twice, and nobody noticed")
			}
		})
	}
}

// surplus is how many units there are more than the clients meant to use.
func (r *run) surplus(t *testing.T) (units int64) {
	t.Helper()
	for customer := range numCustomers {
		for _, m := range r.read(t, quotaOf(customer, "")).Meters {
			more := m.Used - r.ledger.should(account{customer: customer, meter: m.Meter}).net
			if more < 0 {
				t.Errorf("%s: %s: %d units too few", keyOf(customer), m.Meter, -more)
			}
			units += more
		}
	}
	return units
}
