package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

const rulesFile = "../../deploy/prometheus/quotad.rules.yml"

// promtool runs Prometheus' checker.
func promtool(t testing.TB, dir string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "promtool", args...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v (scripts/deps.sh promtool installs it)\n%s", args, err, out)
	}
}

func TestAlertRules(t *testing.T) {
	t.Parallel()
	dir := filepath.Dir(rulesFile)
	promtool(t, dir, "check", "rules", "quotad.rules.yml")
	promtool(t, dir, "test", "rules", "quotad.rules_test.yml")
}

// scrape is a node's metrics, as Prometheus reads them: by series.
func (n *testNode) scrape() map[string]string {
	n.t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(string(n.do("GET", "/metrics", "").is(200).raw)) {
		line = strings.TrimSpace(line)
		if at := strings.LastIndex(line, " "); at > 0 && !strings.HasPrefix(line, "#") {
			all[line[:at]] = line[at+1:]
		}
	}
	return all
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// found are what a pattern finds in a text, each once.
func found(text, pattern string) []string {
	var all []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Alerts and the board go by metrics that there are, and the runbook names the alerts that there are.
func TestAlertsAndBoardAreOfThisVersion(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(fixed("l", 10))
	n.hit(1).is(200)
	testkit.Eventually(t, "the sizes of tables are read", func() bool { return n.node.census.Last() != nil })
	there := map[string]bool{}
	for series := range n.scrape() {
		name, _, _ := strings.Cut(series, "{")
		there[name] = true
	}
	rules := read(t, rulesFile)
	_, runbook, _ := strings.Cut(read(t, "../../docs/operations.md"), "## Alerts")
	runbook, _, _ = strings.Cut(runbook, "\n## ")
	for _, text := range []string{rules, runbook, read(t, "../../deploy/grafana/quotad.json"), read(t, "../../docs/guide/metrics.md")} {
		for _, name := range found(text, `\b(quotad_[a-z_]+[a-z])\b`) {
			if name == "quotad_disk_free_bytes" { // of an embedded server only: see TestBinary
				continue
			}
			if !there[name] && name != "quotad_engine_round_trip_seconds" && name != "quotad_http_request_seconds" && name != "quotad_engine_batch_hits" {
				t.Errorf("there is no metric %s", name)
			}
		}
	}
	alerts, named := found(rules, `alert: (\w+)`), found(runbook, "`(Quotad[A-Z]\\w+)`")
	if !slices.Equal(alerts, named) || len(alerts) < 20 {
		t.Errorf("the alerts are %v, and the runbook names %v", alerts, named)
	}
}

// Profiles are on the listener of metrics, and on no other.
func TestProfiles(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--metrics-listen=127.0.0.1:0")
	n.do("GET", "/debug/pprof/", "").is(404)
	for path, holds := range map[string]string{
		"/debug/pprof/": "heap", "/debug/pprof/heap?debug=1": "heap profile", "/debug/pprof/goroutine?debug=1": "goroutine profile",
		"/debug/pprof/profile?seconds=1": "",
	} {
		response, err := n.client.Get(n.node.front.urls[1] + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || len(text) == 0 || !strings.Contains(string(text), holds) {
			t.Errorf("%s: %s, %v: %.200s", path, response.Status, err, text)
		}
	}
}

// fires fails the test unless each of the alerts fires when a node's metrics go from one scrape to another. Prometheus
// evaluates all rules, on the series of the metrics that the rules name.
func fires(t testing.TB, alerts []string, before, after map[string]string) {
	t.Helper()
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	named := found(read(t, rules), `\b(quotad_[a-z_]+[a-z])\b`)
	var test strings.Builder
	fmt.Fprintf(&test, "rule_files: [%q]\nevaluation_interval: 15s\ntests:\n  - interval: 15s\n    input_series:\n", rules)
	for series, value := range after {
		name, labels, _ := strings.Cut(series, "{")
		if !slices.Contains(named, name) {
			continue
		}
		was, ok := before[series]
		if !ok {
			was = "_" // no sample
		}
		fmt.Fprintf(&test, "      - {series: '%s{instance=\"a\",%s', values: '%sx10 %sx20'}\n", name, cmp.Or(labels, "}"), was, value)
	}
	fmt.Fprintf(&test, "    promql_expr_test:\n")
	for _, alert := range alerts {
		for _, at := range []struct{ time, samples string }{
			{"2m", "[]"}, // while all is well
			{"4m", fmt.Sprintf(`[{labels: '{alertname="%s"}', value: 1}]`, alert)},
		} {
			fmt.Fprintf(&test, "      - {expr: 'group by (alertname) (ALERTS{alertstate=\"firing\",alertname=\"%s\"})', eval_time: %s, exp_samples: %s}\n",
				alert, at.time, at.samples)
		}
	}
	file := filepath.Join(t.TempDir(), "test.yml")
	write(t, file, test.String())
	promtool(t, ".", "test", "rules", file)
}

// A fault of the runbook's, and the alerts that it names.
func TestFaultsFireTheirAlerts(t *testing.T) {
	t.Parallel()
	const ends = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`
	locked := func(n *testNode, table string, meanwhile func()) {
		conn, err := postgres.Connect(testkit.Context(t), n.databaseURL, nil)
		if err != nil {
			n.t.Fatal(err)
		}
		defer postgres.CloseConn(conn)
		if _, err := conn.Exec(testkit.Context(t), `BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0; LOCK TABLE `+table); err != nil {
			n.t.Fatal(err)
		}
		meanwhile()
	}
	hits := func(n *testNode, lasts time.Duration) {
		for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			_ = n.status("POST", "/v1/hits", hitOf("acme", "requests", ""))
		}
	}
	const long = 9 * time.Second // rules ask for more than 5 s, and a second passes before a node says that it is degraded
	for name, fault := range map[string]struct {
		alerts []string
		server *pgtest.Instance // nil: the shared one
		happen func(n *testNode, server *pgtest.Instance)
	}{
		"the database is gone": {[]string{"QuotadDatabaseUnreachable", "QuotadLetIn"}, pgtest.Server(t), func(n *testNode, server *pgtest.Instance) {
			server.Stop()
			hits(n, long)
		}},
		"it takes no writes": {[]string{"QuotadDatabaseReadOnly"}, nil, func(n *testNode, _ *pgtest.Instance) {
			execSQL(t, n.databaseURL, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
			execute(t, n.databaseURL, ends)
			hits(n, long)
		}},
		"a right is missing": {[]string{"QuotadDatabaseRefuses"}, nil, func(n *testNode, _ *pgtest.Instance) {
			execute(t, n.databaseURL, "REVOKE UPDATE ON counters FROM CURRENT_USER")
			hits(n, long)
		}},
		"a password was changed": {[]string{"QuotadLoginRefused", "QuotadDatabaseRefuses"}, withPasswords(t), func(n *testNode, server *pgtest.Instance) {
			execute(t, server.AdminURL(), "ALTER ROLE quotad PASSWORD 'another'")
			execute(t, server.AdminURL(), strings.Replace(ends, "current_database()", "'quotad'", 1))
			hits(n, long)
		}},
		"no connection is left": {[]string{"QuotadDatabaseErrors"}, pgtest.Server(t), func(n *testNode, server *pgtest.Instance) {
			execute(t, server.AdminURL(), "ALTER ROLE quotad CONNECTION LIMIT 0")
			execute(t, server.AdminURL(), strings.Replace(ends, "current_database()", "'quotad'", 1))
			hits(n, time.Second)
		}},
		"a table is locked": {[]string{"QuotadDatabaseSlow"}, nil, func(n *testNode, _ *pgtest.Instance) {
			locked(n, "counters", func() { hits(n, long) })
		}},
		"changes cannot be read": {[]string{"QuotadChangesLate"}, nil, func(n *testNode, _ *pgtest.Instance) {
			locked(n, "changes", func() { hits(n, long) })
		}},
		"an answer is lost": {[]string{"QuotadOutcomeUnknown"}, nil, func(n *testNode, _ *pgtest.Instance) {
			conn, err := postgres.Connect(testkit.Context(t), n.databaseURL, nil)
			if err != nil {
				n.t.Fatal(err)
			}
			defer postgres.CloseConn(conn)
			locked(n, "counters", func() {
				answered := make(chan int)
				go func() { answered <- n.status("POST", "/v1/hits", hitOf("acme", "requests", "")) }()
				waiting := strings.Replace(ends, "datname", "wait_event_type = 'Lock' AND datname", 1)
				testkit.Eventually(n.t, "a statement that waits for the lock is ended", func() bool { // it waits for no longer than 400 ms
					var ended int
					err := conn.QueryRow(testkit.Context(t), waiting).Scan(&ended)
					return err == nil && ended > 0
				})
				<-answered
			})
		}},
		"counters are ahead": {[]string{"QuotadCountersAhead"}, nil, func(n *testNode, _ *pgtest.Instance) {
			execute(t, n.databaseURL, "UPDATE counters SET at = at + 3600000000, version = version + 1")
			hits(n, time.Second)
		}},
		"history went back": {[]string{"QuotadHistoryWentBack"}, nil, func(n *testNode, _ *pgtest.Instance) {
			execute(t, n.databaseURL, "UPDATE counters SET change = change + 7, version = version + 1")
			hits(n, 2*time.Second)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var databaseURL string
			switch {
			case strings.Contains(name, "password"):
				databaseURL = strings.Replace(fault.server.URL(), "quotad@", "quotad:first@", 1)
			case fault.server != nil:
				databaseURL = fault.server.URL()
			}
			n := start(t, databaseURL)
			n.setUp(fixed("l", 100_000_000))
			n.hit(1).is(200)
			before := n.scrape()
			fault.happen(n, fault.server)
			after := n.scrape()
			fires(t, fault.alerts, before, after)
		})
	}
}
