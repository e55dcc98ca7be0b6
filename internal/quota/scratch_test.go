package quota

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/calendar"
)

func scratch(t testing.TB) (Options, *pgxpool.Pool) {
	url := "postgres://postgres@/postgres?host=/tmp/pgq&port=5999"
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	start := time.Now()
	return Options{
		Pool:      pool,
		Stopwatch: func() time.Duration { return time.Since(start) },
		Now:       func(context.Context) (int64, error) { return time.Now().UnixMicro(), nil },
		Connect: func(ctx context.Context) (*pgx.Conn, error) {
			c, err := pgx.ParseConfig(url)
			if err != nil {
				return nil, err
			}
			for k, v := range SessionSettings {
				c.RuntimeParams[k] = v
			}
			return pgx.ConnectConfig(ctx, c)
		},
	}, pool
}


func TestScratch(t *testing.T) {
	o, pool := scratch(t)
	pool.Exec(context.Background(), "TRUNCATE counters, usage")
	e, err := newEngine(o)
	if f := os.Getenv("STEP"); f != "" {
		e.statements[chargeHits] = strings.ReplaceAll(e.statements[chargeHits], "quotad_step_v1", f)
	}
	e.start()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	h, bad := Compile(Spec{Name: "hourly", Algorithm: "fixed_window", Limit: 5e9, Window: "1h"})
	d, bad2 := Compile(Spec{Name: "daily", Algorithm: "token_bucket", Limit: 2e9, Window: "1d"})
	if bad != nil || bad2 != nil {
		t.Fatal(bad, bad2)
	}
	limits := []*Limit{h, d}
	a, _ := calendar.ParseAnchor("2026-01-01T00:00:00")
	n := 10000
	targets := make([]*Target, n)
	for i := range targets {
		targets[i] = &Target{Change: 1, Counters: []Counter{{CounterKey{int64(i + 1), 1, ""}, limits}}, Zone: time.UTC, Anchor: a, Interval: calendar.Interval{Unit: calendar.Months, Count: 1}}
	}
	dec, err := e.Decide(context.Background(), targets[0], 3)
	t.Logf("%+v %v", dec, err)
	t.Logf("%+v %+v", dec.View(0), dec.View(1))
	for _, mod := range []int{n, n, 1} {
		var wg sync.WaitGroup
		begin := time.Now()
		before := e.Stats()
		pid := e.lanes[0].store.conn.PgConn().PID()
		cmd := exec.Command("perf", "stat", "-x,", "-e", "task-clock", "-p", strconv.Itoa(int(pid)))
		var out bytes.Buffer
		cmd.Stderr = &out
		cmd.Start()
		time.Sleep(200 * time.Millisecond)
		total := 200000
		for w := 0; w < 256; w++ {
			wg.Go(func() {
				x := uint64(w)*7919 + 13
				for i := 0; i < total/256; i++ {
					x = x*6364136223846793005 + 1442695040888963407
					_, err := e.Decide(context.Background(), targets[int(x>>33)%mod], 1)
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		el := time.Since(begin)
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
		for _, line := range strings.Split(out.String(), "\n") {
			f := strings.Split(line, ",")
			if len(f) > 2 {
				v, _ := strconv.ParseFloat(f[0], 64)
				t.Logf("   %s per hit %.2f us", f[2], v*1000/float64(total))
			}
		}
		s := e.Stats()
		t.Logf("mod %d: %.0f/s, %d batches, %.1f hits/batch, %d stmts", mod, float64(total)/el.Seconds(), s.Batches-before.Batches, float64(s.Batched-before.Batched)/float64(s.Batches-before.Batches), s.Statements-before.Statements)
	}
}
