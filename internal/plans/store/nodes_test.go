package store_test

import (
	"fmt"
	"testing"

	"quotad/internal/plans"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// What nodes write of themselves is read again; a write that comes twice counts once; what is old
// goes.
func TestNodesBeat(t *testing.T) {
	t.Parallel()
	s, ctx := planstest.NewStore(t, pgtest.NewDatabase(t)), t.Context()
	const minute, hour = int64(60e6), int64(3600e6)
	now := 30 * 24 * hour
	beat := func(n plans.Node, at, of, admitted, refused int64) {
		t.Helper()
		n.SeenAt = at
		for range 2 {
			if err := s.Beat(ctx, &n, of, plans.Decided{Admitted: admitted, Refused: refused}); err != nil {
				t.Fatal(err)
			}
		}
	}
	nodes := func(want string) {
		t.Helper()
		all, err := s.Nodes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, n := range all {
			checked := int64(0)
			if n.CheckedAt != nil {
				checked = *n.CheckedAt
			}
			got += fmt.Sprint(n.ID, " ", n.Name, " ", n.Version, " ", n.State, " ", n.Reason, " ", now-n.StartedAt, " ", now-n.SeenAt, " ", checked, " ",
				n.Disagreeing, "\n")
		}
		if got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
	one := plans.Node{ID: "1", Name: "b:80", Version: "v1", State: "starting", StartedAt: now}
	beat(one, now, now, 0, 0)
	at := now - 5
	one.State, one.Reason, one.CheckedAt, one.Disagreeing, one.Version = "degraded", "slow", &at, []string{"x", "y"}, "v9"
	beat(one, now, now, 3, 1)
	beat(one, now, now, 5, 2) // the same minute, later
	two := plans.Node{ID: "2", Name: "a:80", Version: "v2", State: "ready", StartedAt: now - 7}
	beat(two, now, now, 10, 20)
	nodes(fmt.Sprintf("2 a:80 v2 ready  7 0 0 []\n1 b:80 v1 degraded slow 0 0 %d [x y]\n", at))

	beat(two, now, now-minute, 100, 200)
	beat(two, now, now-minute-1, 1000, 2000)
	beat(two, now, now-24*hour, 1e4, 2e4)
	beat(two, now, now-25*hour-1, 1e5, 2e5) // the next write deletes it
	beat(two, now, now, 10, 20)
	all, err := s.DecidedSince(ctx, now, now-minute, now-25*hour)
	if want := []plans.NodeDecided{
		{Node: "1", Recent: plans.Decided{Admitted: 5, Refused: 2}, Hour: plans.Decided{Admitted: 5, Refused: 2}, Day: plans.Decided{Admitted: 5, Refused: 2}},
		{
			Node: "2", Recent: plans.Decided{Admitted: 10, Refused: 20}, Hour: plans.Decided{Admitted: 110, Refused: 220},
			Day: plans.Decided{Admitted: 11110, Refused: 22220},
		},
	}; err != nil || fmt.Sprint(all) != fmt.Sprint(want) {
		t.Errorf("%v, %v, want %v", all, err, want)
	}
	var kept int
	if err := s.Pool().QueryRow(ctx, "SELECT count(*) FROM decisions").Scan(&kept); err != nil || kept != 5 {
		t.Errorf("%d rows of decisions are kept, %v", kept, err)
	}

	// A node that is silent stays for an hour, unless another one has its name.
	later := now + 31e6
	three := plans.Node{ID: "3", Name: "b:80", Version: "v3", State: "ready", StartedAt: now}
	beat(three, later, now, 0, 0)
	nodes("2 a:80 v2 ready  7 0 0 []\n3 b:80 v3 ready  0 -31000000 0 []\n")
	beat(three, now+hour+1, now, 0, 0)
	nodes(fmt.Sprintf("3 b:80 v3 ready  0 %d 0 []\n", -hour-1))
	if err := s.EndNode(ctx, "3"); err != nil {
		t.Fatal(err)
	}
	nodes("")
	if all, err := s.DecidedSince(ctx, now, now, now); err != nil || len(all) != 2 {
		t.Errorf("what nodes decided is gone with them: %v, %v", all, err)
	}
}
