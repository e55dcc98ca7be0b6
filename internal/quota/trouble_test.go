package quota

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
	"quotad/internal/quota/model"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/quotatest"
)

// connecting reports whether a hit was refused since a session is being made.
func connecting(err error) bool {
	return err != nil && strings.Contains(err.Error(), "a new connection to the database is being made")
}

// hindrance is how a database is there and does not let a node work, and how that ends.
type hindrance struct {
	url          func(string) string // what becomes of the database's URL
	damage, mend string              // statements
	unsure       bool                // the node does not know the time
}

// TestADatabaseThatRefusesIsNoOutage: it is there and does not let the node work. No hit
// may be let in for that; the log says so once, and the node, until it is put right.
func TestADatabaseThatRefusesIsNoOutage(t *testing.T) {
	for name, c := range map[string]hindrance{
		"login": {url: func(u string) string { return strings.Replace(u, "://quotad@", "://nobody@", 1) }},
		"table": {damage: "ALTER TABLE counters RENAME TO lost", mend: "ALTER TABLE lost RENAME TO counters"},
		"right": {damage: "REVOKE UPDATE ON counters FROM CURRENT_USER", mend: "GRANT UPDATE ON counters TO CURRENT_USER"},
		"worker": {
			damage: "REVOKE INSERT ON receipts_0, receipts_1, receipts_2 FROM CURRENT_USER",
			mend:   "GRANT INSERT ON receipts_0, receipts_1, receipts_2 TO CURRENT_USER",
		},
		"room":  {damage: "ALTER DATABASE %d CONNECTION LIMIT 1", mend: "ALTER DATABASE %d CONNECTION LIMIT -1"},
		"clock": {unsure: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for a while
			db, ctx := newTestDB(t), testkit.Context(t)
			e, log, repair := c.refused(t, db)
			target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 1000, "1d"))
			hit := func() error {
				if name != "worker" {
					_, err := e.Decide(ctx, target, 1)
					return err
				}
				return e.DecideAll(ctx, []model.Hit{{Target: target, Cost: 1, ID: model.NewID("hit", "x")}})[0].Err
			}
			testkit.Eventually(t, "the first attempt has an end", func() bool { return !connecting(hit()) })
			for range 20 {
				if err := hit(); !errors.Is(err, session.ErrNoSession) || errors.Is(err, session.ErrUnavailable) {
					t.Fatalf("a hit: %v", err)
				}
			}
			if err := e.Trouble(); !errors.Is(err, session.ErrNoSession) {
				t.Errorf("the trouble is %v", err)
			}
			if n := log.Count("hits cannot be charged"); n != 1 {
				t.Errorf("the log says so %d times:\n%s", n, log.String())
			}
			repair()
			testkit.Eventually(t, "hits are charged again", func() bool { return hit() == nil && e.Trouble() == nil })
			if err := errors.Join(hit(), e.Trouble()); err != nil || log.Count("hits are charged again") != 1 {
				t.Errorf("afterwards: %v\n%s", err, log.String())
			}
		})
	}
}

// refused starts an engine on a database that refuses it, until it is repaired.
func (c *hindrance) refused(t *testing.T, db *testDB) (e *Engine, log *pgtest.Log, repair func()) {
	t.Helper()
	ctx, clock := testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	config, err := pgx.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	run := func(sql string) {
		if sql != "" {
			db.Exec(ctx, t, strings.ReplaceAll(sql, "%d", pgx.Identifier{config.Database}.Sanitize()))
		}
	}
	var unsure atomic.Bool
	unsure.Store(c.unsure)
	run("SELECT 1") // the pool has its connection before there is no room for more
	run(c.damage)
	log = new(pgtest.Log)
	var url atomic.Value
	url.Store(db.URL)
	if c.url != nil {
		url.Store(c.url(db.URL))
	}
	e = db.startEngine(t, clock, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(log, nil))
		o.Connect = func(ctx context.Context) (*pgx.Conn, error) {
			return postgres.Connect(ctx, url.Load().(string), session.SessionSettings) //nolint:forcetypeassert // it is a string
		}
		o.Now = func(ctx context.Context) (int64, error) {
			if unsure.Load() {
				return 0, errors.New("the offset is not known")
			}
			return clock.Now(ctx)
		}
	})
	return e, log, func() {
		run(c.mend)
		url.Store(db.URL)
		unsure.Store(false)
	}
}

// TestARightThatIsTakenAway while sessions are open is met by a statement, and is no fault
// of the hit.
func TestARightThatIsTakenAway(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	var log pgtest.Log
	e := db.startEngine(t, clock, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	target := quotatest.Target(1, 1, 1, quotatest.Window(t, "a", 1000, "1d"))
	testkit.Eventually(t, "there is a session", func() bool {
		_, err := e.Decide(ctx, target, 1)
		return !connecting(err)
	})
	db.Exec(ctx, t, "REVOKE UPDATE ON counters FROM CURRENT_USER")
	for range 20 {
		if _, err := e.Decide(ctx, target, 1); !errors.Is(err, session.ErrNoSession) && !connecting(err) {
			t.Fatalf("a hit: %v", err)
		}
	}
	if n := log.Count("level=ERROR"); n != 1 || !errors.Is(e.Trouble(), session.ErrNoSession) {
		t.Errorf("%v, said %d times:\n%s", e.Trouble(), n, log.String())
	}
	db.Exec(ctx, t, "GRANT UPDATE ON counters TO CURRENT_USER")
	testkit.Eventually(t, "it is found out without a hit", func() bool { return e.Trouble() == nil })
	if d, err := e.Decide(ctx, target, 1); err != nil || d.View(0).Used != 2 || e.Trouble() != nil {
		t.Errorf("afterwards: %s, %v, %v", d.String(), err, e.Trouble())
	}
}
