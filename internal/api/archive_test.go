package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing/archive"
	"quotad/internal/postgres"
	"quotad/internal/quota/upkeep"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/quotatest"
)

func month(m time.Month) time.Time { return time.Date(2026, m, 1, 0, 0, 0, 0, time.UTC) }

// archiver takes months out as quotad archive does.
func (n *node) archiver() *archive.Archiver {
	n.t.Helper()
	pool, err := postgres.Open(testkit.Context(n.t), n.database, postgres.PoolOptions{StatementTimeout: -1})
	check(n.t, err)
	n.t.Cleanup(pool.Close)
	return &archive.Archiver{Pool: pool, Settle: 100 * time.Millisecond, Now: func(context.Context) (int64, error) { return month(11).UnixMicro(), nil }}
}

// notYet fails unless nothing is taken out, and the reason says a text.
func (n *node) notYet(before time.Time, says string) {
	n.t.Helper()
	stands := func() string {
		return pgtest.Query[string](n.t, n.database, `SELECT concat((SELECT a FROM archive a), (SELECT string_agg(c::text, '') FROM counters c),
			(SELECT count(*) FROM pg_inherits), (SELECT count(*) FROM pg_constraint WHERE conname = 'archived'))`)
	}
	was := stands()
	report, err := n.archiver().Run(testkit.Context(n.t), before)
	if err == nil || !strings.Contains(err.Error(), says) || len(report.Months) > 0 {
		n.t.Fatalf("%v: %+v, %v", before, report, err)
	}
	if now := stands(); now != was {
		n.t.Errorf("%v: refused, and yet changed\n%s\n%s", before, was, now)
	}
}

// A quarter of real billing; January and February are taken out beside hits. The books agree, what is of
// those months is refused by name, what is on paper stays, and all else goes on.
func TestArchive(t *testing.T) {
	t.Parallel()
	n := bookedNode(t)
	ctx := testkit.Context(t)
	quotatest.SplitMonths(ctx, t, n.store.Pool(), month(1), 5)
	n.want(201, "PUT", "/v1/meters/calls", `{"unit":"call"}`)
	n.want(201, "PUT", "/v1/test-clocks/old", `{"now":"2026-01-31T22:10:00Z"}`)
	n.want(201, "PUT", "/v1/plans/free",
		`{"name":"Free","currency":"USD","interval":"month","limits":[{"name":"l","meter":"calls","algorithm":"allocation","limit":100}]}`)
	for _, key := range []string{"idle", "still"} { // no price, no fence: their counters keep January
		n.want(201, "PUT", "/v1/customers/"+key, `{"name":"I","plan":"free","billing_anchor":"2026-01-01T00:00:00","test_clock":"old"}`)
		n.want(200, "POST", "/v1/hits", `{"customer":"`+key+`","meter":"calls","cost":5,"id":"i1"}`)
	}
	n.want(201, "PUT", "/v1/customers/over", `{"name":"G","plan":"free","billing_anchor":"2026-01-01T00:00:00","test_clock":"old"}`)
	n.bill(200, "over", `{"ends_at":"2026-02-10T00:00:00Z"}`)
	n.notYet(month(2).Add(time.Second), "first instant of a month")
	n.notYet(month(11), "too young")
	n.notYet(month(3), "billing periods that begin before it are not closed yet, for example that of customer")
	n.want(200, "PUT", "/v1/test-clocks/old", `{"now":"2026-03-01T12:00:00Z"}`)
	n.settled("2026-03-03T00:00:00Z")
	n.notYet(month(3), "1 test clocks show")
	n.want(200, "PUT", "/v1/test-clocks/old", `{"now":"2026-03-03T00:00:00Z"}`)
	n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":9,"reason":"r","at":"2026-02-10T00:00:00Z","id":"late2"}`)
	n.notYet(month(3), "adjustments of usage from before it are on no invoice yet, for example one of customer acme")
	n.want(200, "PUT", "/v1/test-clocks/old", `{"now":"2026-04-01T00:30:00Z"}`)
	n.settled("2026-04-01T00:30:00Z")
	n.notYet(month(3), "drafts bill or correct usage from before it, for example one of customer acme")
	n.want(200, "PUT", "/v1/test-clocks/old", `{"now":"2026-04-03T00:00:00Z"}`)
	n.settled("2026-04-03T00:00:00Z")
	acme := n.invoicesOf("acme")
	n.notYet(month(5), "for example that of customer a")
	n.agreed("before")
	if units := pgtest.Query[int64](t, n.database, `SELECT sum(units) FROM counters WHERE hour < $1`, month(2).UnixMicro()); units != 10 {
		t.Fatalf("%d units of January are still in counters", units)
	}

	// Hits of all ways go on beside it.
	var hits sync.WaitGroup
	var stop atomic.Bool
	var sent atomic.Int64
	for _, who := range []string{`"customer":"acme","meter":"requests"`, `"customer":"idle","meter":"calls"`, `"customer":"acme","meter":"tokens","id":"%d"`} {
		hits.Go(func() {
			for i := 0; !stop.Load(); i++ {
				body := "{" + who + "}"
				if strings.Contains(who, "%d") {
					body = "{" + fmt.Sprintf(who, i) + "}"
				}
				if got := n.do("POST", "/v1/hits", body); got.status != 200 && got.status != 429 {
					t.Errorf("a hit beside it: %d %s", got.status, got.json)
				}
				sent.Add(1)
			}
		})
	}
	report, err := n.archiver().Run(ctx, month(3))
	stop.Store(true)
	hits.Wait()
	check(t, err)
	if len(report.Months) != 3 || report.Booked == 0 || sent.Load() < 10 || report.GoneBefore != month(3).UnixMicro() || report.Archive.Months != 3 {
		t.Errorf("%+v, %d hits", report, sent.Load())
	}
	if got := fmt.Sprint(report.Months[1].Tables); got != "[archived_usage_2026_01 archived_adjustments_2026_01]" {
		t.Error(got)
	}
	n.agreed("after")
	books := n.want(200, "GET", "/v1/reconcile", "").json["archived"].(map[string]any)
	if books["before"] != "2026-03-01T00:00:00Z" || books["months"] != 3.0 {
		t.Errorf("%+v", books)
	}
	// Without the sums, what was charged is more than what was booked.
	pgtest.Exec(t, n.database, `CREATE TABLE kept AS SELECT * FROM archived_sums`, `DELETE FROM archived_sums`)
	if got := n.want(200, "GET", "/v1/reconcile", ""); got.json["ok"] != false || !strings.Contains(fmt.Sprint(got.json), "units were charged. Booked are") {
		t.Errorf("without the sums: %s", got.json)
	}
	pgtest.Exec(t, n.database, `INSERT INTO archived_sums SELECT * FROM kept`, `DROP TABLE kept`)

	n.want(200, "POST", "/v1/hits", `{"customer":"still","meter":"calls","cost":2}`) // its first since January
	n.archivedIsRefused(acme)
	n.agreed("after all that was refused")

	// What is of later goes on, and closes.
	n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"requests","cost":2,"reason":"r","at":"2026-03-10T00:00:00Z","id":"march"}`)
	n.want(201, "POST", "/v1/invoices/"+acme[0]+"/credit-notes", `{"lines":[{"n":1,"amount_minor":3}],"reason":"x","to":"outside","id":"n1"}`)
	n.want(200, "PUT", "/v1/test-clocks/old", `{"now":"2026-05-03T00:00:00Z"}`)
	n.settled("2026-05-03T00:00:00Z")
	n.agreed("a month later")
	n.want(201, "POST", "/v1/customers/over/charges", `{"description":"Late","amount_minor":70,"currency":"USD","id":"late"}`)
	n.want(200, "PUT", "/v1/test-clocks/old", `{"now":"2026-05-03T02:00:00Z"}`)
	n.settled("2026-05-03T02:00:00Z")
	if got := n.invoicesOf("over"); len(got) != 1 {
		t.Errorf("%d invoices of whose billing ended before", len(got))
	}
	n.agreed("owed by whose billing ended before")
	if report, err = n.archiver().Run(ctx, month(3)); err != nil || len(report.Months) != 0 || report.Archive.Months != 3 {
		t.Errorf("again: %+v, %v", report, err)
	}
	n.notYet(month(2), "archived already")
}

// archivedIsRefused: whatever would change or show usage of February or before is a problem of its own.
func (n *node) archivedIsRefused(invoices []string) {
	n.t.Helper()
	refused := func(method, path, body string) {
		n.t.Helper()
		if got := n.want(409, method, path, body); !strings.HasSuffix(fmt.Sprint(got.json["type"]), "/problems/archived") {
			n.t.Errorf("%s %s: %s", method, path, got.json)
		}
	}
	const late = `{"meter":"requests","cost":1,"reason":"r","at":"2026-02-28T23:59:59Z","id":"x"}`
	refused("POST", "/v1/customers/acme/adjustments", late)
	refused("POST", "/v1/customers/acme/adjustments?preview=true", late)
	refused("POST", "/v1/refunds", `{"customer":"beta","meter":"tokens","cost":1,"hit":"b","id":"y"}`)
	got := n.imported(usageLine("z1", 1, "2026-01-10T00:00:00Z")+"\n"+usageLine("z2", 1, "2026-04-02T00:00:00Z"), 1, 0, 1)
	if !strings.Contains(fmt.Sprint(got.json), "/problems/archived") {
		n.t.Errorf("%s", got.json)
	}
	refused("POST", "/v1/invoices/"+n.invoicesOf("ahead")[1]+"/void", `{"reason":"x","reissue":true}`)
	refused("POST", "/v1/invoices/"+invoices[2]+"/void", `{"reason":"x"}`) // it is of March, and took an adjustment of February
	refused("GET", "/v1/invoices/"+invoices[0]+"/lines/2/usage", "")
	refused("PUT", "/v1/test-clocks/clock", `{"now":"2026-03-01T12:00:00Z"}`)
	refused("PUT", "/v1/test-clocks/new", `{"now":"2026-02-01T12:00:00Z"}`)
	n.want(200, "GET", "/v1/invoices/"+invoices[0], "")
	for _, form := range []string{".html", ".pdf", ".csv"} {
		if status, text, _ := n.text("GET", "/v1/invoices/"+invoices[0]+form, ""); status != 200 || len(text) < 500 {
			n.t.Errorf("%s: %d %.200q", form, status, text)
		}
	}
	n.want(201, "PUT", "/v1/customers/late", `{"name":"L","plan":"pro","test_clock":"clock"}`)
	refused("PUT", "/v1/customers/late/billing", `{"starts_at":"2026-02-01T00:00:00Z"}`)

	// Hits that come in one transaction with them are done.
	var together sync.WaitGroup
	for i := range 40 {
		together.Go(func() {
			if i%2 == 0 {
				n.want(200, "POST", "/v1/hits", fmt.Sprintf(`{"customer":"acme","meter":"requests","id":"together%d"}`, i))
				return
			}
			refused("POST", "/v1/customers/acme/adjustments", strings.Replace(late, `"x"`, fmt.Sprintf(`"x%d"`, i), 1))
		})
	}
	together.Wait()

	usage := func(from string) map[string]any {
		return n.want(200, "GET", "/v1/customers/acme/usage?meter=requests&granularity=day&from="+from, "").json
	}
	all := usage("2026-02-20T00:00:00Z")
	points := all["points"].([]any)
	if all["archived_before"] != "2026-03-01T00:00:00Z" || points[0].(map[string]any)["start"] != "2026-03-01T00:00:00Z" {
		n.t.Errorf("%v", all)
	}
	if all = usage("2026-03-01T00:00:00Z"); all["archived_before"] != nil {
		n.t.Errorf("%v", all)
	}
}

// Whatever ends it, usage is whole, the books agree, and the same command goes on.
func TestArchiveGoesOn(t *testing.T) {
	t.Parallel()
	n := bookedNode(t)
	ctx := testkit.Context(t)
	quotatest.SplitMonths(ctx, t, n.store.Pool(), month(1), 5)
	n.settled("2026-04-01T00:30:00Z") // what was corrected is on invoices
	n.settled("2026-04-03T00:00:00Z")
	whole := func() string {
		return pgtest.Query[string](t, n.database, `SELECT concat((SELECT coalesce(sum(admitted), 0) FROM usage) + coalesce((SELECT sum(units) FROM archived_sums), 0)
			+ (SELECT sum(units) FROM counters WHERE attribute = ''), ' ', (SELECT sum(total) FROM counters WHERE attribute = ''))`)
	}
	was := whole()
	held := func(what string) {
		t.Helper()
		if now := whole(); now != was {
			t.Errorf("%s: booked and charged are %s, and were %s", what, now, was)
		}
		n.agreed(what)
	}
	// Somebody reads January for long. The command is killed while it waits with all sums made.
	conn, err := pgx.Connect(ctx, n.database)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(ctx)) })
	reader, err := conn.Begin(ctx)
	check(t, err)
	killed, first := make(chan error, 1), n.archiver()
	first.Done = func(upkeep.ArchivedMonth) { // all that was before January is out
		if _, err := reader.Exec(ctx, `SELECT count(*) FROM usage_2026_01`); err != nil {
			t.Error(err)
		}
	}
	go func() {
		_, err := first.Run(ctx, month(3))
		killed <- err
	}()
	const summing = `FROM pg_locks WHERE relation = 'archived_sums'::regclass AND mode = 'RowExclusiveLock'`
	testkit.Eventually(t, "its sums of January are made", func() bool {
		if len(killed) > 0 {
			t.Fatal(<-killed)
		}
		return pgtest.Query[int](t, n.database, `SELECT count(*) `+summing) > 0
	})
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`) // hits pass meanwhile
	was = whole()
	pgtest.Exec(t, n.database, `SELECT pg_terminate_backend(pid) `+summing)
	if err := <-killed; err == nil {
		t.Fatal("it was not killed")
	}
	check(t, reader.Rollback(ctx))
	held("killed before a month was taken out")
	// Its context ends after the next month.
	short, end := context.WithCancel(ctx)
	a := n.archiver()
	a.Done = func(upkeep.ArchivedMonth) { end() }
	if report, err := a.Run(short, month(3)); !errors.Is(err, context.Canceled) || len(report.Months) != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	held("ended after a month")
	report, err := n.archiver().Run(ctx, month(3))
	if check(t, err); report.GoneBefore != month(3).UnixMicro() || len(report.Months) == 0 {
		t.Errorf("%+v", report)
	}
	held("gone on")
}
