package quota

import (
	"strings"
	"testing"

	"quotad/internal/postgres"
	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// Counters are read in each mode in which a database's URL may have queries sent.
func TestReadsInEachQueryMode(t *testing.T) {
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			db, ctx := newTestDB(t), testkit.Context(t)
			with := "?"
			if strings.Contains(db.URL, "?") {
				with = "&"
			}
			pool, err := postgres.Open(ctx, db.URL+with+"default_query_exec_mode="+mode, postgres.PoolOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			e := db.handEngine(t, quotatest.NewClock(quotatest.Epoch), func(o *Options) { o.Pool = pool })
			target := quotatest.Target(1, 1, 1, quotatest.Compile(t, model.Spec{Name: "a", Algorithm: "fixed_window", Limit: 100, Window: "1h"}))
			if r, _ := e.sendBatch(ctx, []model.Hit{{Target: target, Cost: 3}}); r[0].Err != nil {
				t.Fatal(r[0].Err)
			}
			s, err := e.Standings(ctx, []*model.Target{target})
			if err != nil || s[0].View(0).Used != 3 {
				t.Errorf("%v %v", s, err)
			}
		})
	}
}
