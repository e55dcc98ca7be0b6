package quota

import (
	"net"
	"testing"
	"time"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// distant is a connection whose other end is a round trip away.
type distant struct {
	net.Conn
	trip  time.Duration
	asked bool // something was sent since the last answer
}

func (d *distant) Write(b []byte) (int, error) {
	d.asked = true
	return d.Conn.Write(b)
}

func (d *distant) Read(b []byte) (int, error) {
	if d.asked {
		d.asked = false
		time.Sleep(d.trip)
	}
	return d.Conn.Read(b)
}

// TestDistantDatabase: of a database that is far away, but well, the first hits get their
// answers, with an id or without: a session is there before they give up.
func TestDistantDatabase(t *testing.T) {
	db, ctx := newTestDB(t), testkit.Context(t)
	o := db.options(quotatest.NewClock(quotatest.Epoch))
	o.Connect = db.ConnectBy(func(conn net.Conn) net.Conn { return &distant{Conn: conn, trip: 50 * time.Millisecond} })
	e, err := NewEngine(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(testkit.Context(t)) })
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 10, "1d"))
	for i, r := range e.DecideAll(ctx, []model.Hit{{Target: target, Cost: 1}, {Target: target, Cost: 1, ID: model.NewID("hit", "first")}}) {
		if r.Err != nil || !r.Decision.Allowed {
			t.Errorf("hit %d: %+v", i, r)
		}
	}
}
