package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"quotad/internal/postgres"
	"quotad/internal/postgres/embedded"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/migrations"
)

// cli runs one command line in this process.
func cli(t testing.TB, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs pgtest.Log
	p := program{stdout: &out, stderr: &errs, lookupEnv: func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}}
	code = p.main(testkit.Bounded(t), args)
	return code, out.String(), errs.String()
}

func TestHelp(t *testing.T) {
	code, out, errs := cli(t, nil)
	if code != 0 || errs != "" {
		t.Errorf("code %d: %s", code, errs)
	}
	for _, command := range []string{
		"serve", "migrate up", "migrate down", "migrate status", "keys create", "keys list", "keys revoke", "settings list",
		"settings set", "reconcile", "repair clock", "version", "openapi",
	} {
		if !strings.Contains(out, "\n  "+command+" ") {
			t.Errorf("help does not name %q:\n%s", command, out)
		}
	}
	code, out, _ = cli(t, nil, "serve", "--help")
	words := strings.Join(strings.Fields(out), " ") // lines are broken by their width
	if code != 0 || !strings.Contains(out, "$QUOTAD_DATABASE_URL") || !strings.Contains(words, "Default: 127.0.0.1:8080.") ||
		!strings.Contains(out, "$QUOTAD_DEFAULT_PLAN") || !strings.Contains(out, "$QUOTAD_ANONYMOUS_TTL") {
		t.Errorf("serve --help: %d\n%s", code, out)
	}
	for _, args := range [][]string{{"help"}, {"help", "migrate", "down"}} {
		code, out, _ = cli(t, nil, args...)
		_, want, _ := cli(t, nil, append(args[1:], "--help")...)
		if code != 0 || out != want {
			t.Errorf("%v: %d\n%s", args, code, out)
		}
	}
	for _, arg := range []string{"version", "--version"} {
		if code, out, _ = cli(t, nil, arg); code != 0 || out != "quotad "+version+"\n" {
			t.Errorf("%s: %d %q", arg, code, out)
		}
	}
}

func TestOpenAPICommandIsWhatIsServed(t *testing.T) {
	t.Parallel()
	code, out, _ := cli(t, nil, "openapi")
	_, again, _ := cli(t, nil, "openapi")
	if code != 0 || out != again {
		t.Fatalf("code %d, or not twice the same", code)
	}
	if served := documentOf(start(t, "")).raw; string(served) != out {
		t.Error("another document is served")
	}
}

// Wrong settings are named by their flag, and the exit code is 2.
func TestWrongSettings(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(long, []byte(strings.Repeat("x", maxSecretFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	pemFile := filepath.Join(t.TempDir(), "pem")
	text := "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
	if err := os.WriteFile(pemFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		env  map[string]string
		says string
	}{
		{"serve --default-plan=a/b", nil, "--default-plan: the plan's key must be 1 to 200 letters"},
		{"serve", map[string]string{"QUOTAD_DEFAULT_PLAN": "a b"}, "--default-plan: the plan's key"},
		{"serve --anonymous-ttl=59s", nil, "--anonymous-ttl: must be between 1m and 8760h, not 59s"},
		{"serve", map[string]string{"QUOTAD_ANONYMOUS_TTL": "8761h"}, "--anonymous-ttl: must be between 1m and 8760h, not 8761h"},
		{"serve", map[string]string{"QUOTAD_ANONYMOUS_TTL": "30d"}, "--anonymous-ttl"},
		{"serve --audit-retention=23h", nil, "--audit-retention: must be between 24h and 876000h, not 23h"},
		{"serve --close-delay=-1s", nil, "--close-delay: must be between 0s and 1h, not -1s"},
		{"serve --close-delay=61m", nil, "--close-delay: must be between 0s and 1h, not 1h1m"},
		{"settings set correction-time 721h", nil, "--correction-time: must be between 0s and 720h, not 721h"},
		{"serve --event-retention=47h", nil, "--event-retention: must be between 48h and 87600h, not 47h"},
		{"serve --id-retention=0", nil, "--id-retention: must be between 48h and 9600h, not 0s"},
		{"settings set id-retention 47h", nil, "--id-retention: must be between 48h and 9600h, not 47h"},
		{"settings set id-retention 35d", nil, `--id-retention: must be a time such as 500ms, 5s, 1m30s or 48h, not "35d"`},
		{"settings set default-plan a/b", nil, "--default-plan: the plan's key must be"},
		{"settings set lanes 2", nil, "there is no setting \"lanes\" that all nodes share: `quotad settings list`"},
		{"serve --bogus", nil, "--bogus"},
		{"bogus", nil, "bogus"},
		{"keys", nil, "create"},
		{"serve --listen=8080", nil, "--listen"},
		{"serve --listen=127.0.0.1:99999", nil, "--listen"},
		{"serve", map[string]string{"QUOTAD_METRICS_LISTEN": "here"}, "--metrics-listen"},
		{"serve --lanes=0", nil, "--lanes"},
		{"serve --lanes=x", nil, "--lanes"},
		{"serve --lanes=65", nil, "--lanes: must be between 1 and 64, not 65"},
		{"serve --lanes=99999999999999999999", nil, "--lanes"},
		{"serve --max-queue=-1", nil, "--max-queue"},
		{"serve --max-queue=1000001", nil, "--max-queue: must be between 1 and 1000000, not 1000001"},
		{"serve --max-reservations=0", nil, "--max-reservations: must be between 1 and 100000, not 0"},
		{"serve --max-reservations=100001", nil, "--max-reservations"},
		{"serve --failed-keys-per-minute=-1", nil, "--failed-keys-per-minute: must be between 0 and 1000000, not -1"},
		{"serve --failed-keys-per-minute=1000001", nil, "--failed-keys-per-minute: must be between 0 and 1000000"},
		{"serve --cache-memory=0", nil, "--cache-memory: must be between 1 and 65536, not 0"},
		{"serve --cache-memory=65537", nil, "--cache-memory: must be between 1 and 65536, not 65537"},
		{"serve --request-timeout=1h", nil, "--request-timeout: must be between 1ms and 9s"},
		{"serve --decide-within=6s", nil, "--decide-within: must be between 100ms and 5s"},
		{"serve --close-step-timeout=999ms", nil, "--close-step-timeout: must be between 1s and 10m0s, not 999ms"},
		{"serve --close-step-timeout=11m", nil, "--close-step-timeout: must be between 1s and 10m0s, not 11m0s"},
		{"serve --start-timeout=25h", nil, "--start-timeout: must be between"},
		{"serve --drain-delay=61m", nil, "--drain-delay: must be between"},
		{"serve --drain-delay=-1s", nil, "--drain-delay: must be between"},
		{"serve", map[string]string{"QUOTAD_REQUEST_TIMEOUT": "soon"}, `--request-timeout: must be a time such as 500ms, 5s, 1m30s or 48h, not "soon"`},
		{"serve --request-timeout=5", nil, `--request-timeout: "5" has no unit: write 5s for seconds`},
		{"serve", map[string]string{"QUOTAD_START_TIMEOUT": "7"}, `--start-timeout: "7" has no unit`},
		{"serve --log-level=loud", nil, "--log-level: must be debug, info, warn or error"},
		{"keys list --log-level=loud", nil, "--log-level"},
		{"serve", map[string]string{"QUOTAD_LOG_FORMAT": "xml"}, "--log-format"},
		{"serve --rate-limit-reset=days", nil, "--rate-limit-reset"},
		{"serve --public-url=ftp://x", nil, "--public-url"},
		{"serve --tls-cert=/nothing", nil, "--tls-key"},
		{"serve --tls-cert=/nothing --tls-key=/nothing", nil, "--tls-cert: open /nothing"},
		{"serve --tls-cert=" + long + " --tls-key=/nothing", nil, "--tls-cert: " + long + " has no certificate"},
		{"serve --tls-cert=" + pemFile + " --tls-key=" + long, nil, "--tls-key: " + long + " has no private key"},
		{"serve --tls-cert=" + pemFile + " --tls-key=" + pemFile, nil, "--tls-key=" + pemFile},
		{"serve --brand-name=\u200b", nil, "--brand-name: must have a character that is seen"},
		{"serve", map[string]string{"QUOTAD_BRAND_NAME": "\u00a0 "}, "--brand-name: must have a character that is seen"},
		{"serve --admin-key=short", nil, "--admin-key: the secret must be 16"},
		{"serve --listen=127.0.0.1:0", map[string]string{"QUOTAD_DATABASE_URL": "postgres://u:hunter2@[bad"}, "--database-url"},
		{"keys list", map[string]string{"QUOTAD_DATABASE_URL": "postgres://u:hunter2@[bad"}, "--database-url"},
		{"serve", map[string]string{"QUOTAD_ADMIN_KEY": "x", "QUOTAD_ADMIN_KEY_FILE": long}, "QUOTAD_ADMIN_KEY_FILE"},
		{"serve", map[string]string{"QUOTAD_ADMIN_KEY_FILE": long}, "QUOTAD_ADMIN_KEY_FILE"},
		{"serve", map[string]string{"QUOTAD_ADMIN_KEY_FILE": "/nothing"}, "QUOTAD_ADMIN_KEY_FILE"},
		{"keys create --name=x --scope=root", nil, "--scope"},
		{"keys create --name=x --scope=read --expires-at=soon", nil, "--expires-at"},
		{"keys create --name=x --scope=read --expires-at=", nil, "--expires-at"},
		{"keys create --name=x --scope=read --expires-at=9999-12-31T23:59:59-14:00", nil, "--expires-at"},
		{"keys create --name=x --scope=read --expires-at=2030-01-01T1:00:00Z", nil, "--expires-at"},
	} {
		code, out, errs := cli(t, c.env, strings.Fields(c.args)...)
		if code != exitUsage || !strings.Contains(errs, c.says) || out != "" {
			t.Errorf("quotad %s (%v): code %d, stdout %q, stderr %q", c.args, c.env, code, out, errs)
		}
		if strings.Contains(errs, "hunter2") || strings.Contains(errs, "strconv") || strings.Contains(errs, `""`) {
			t.Errorf("quotad %s gives a password away: %s", c.args, errs)
		}
	}
}

func TestSettingsFromEnvironmentAndFiles(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("from-a-file-0123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := program{lookupEnv: func(name string) (string, bool) {
		value, ok := map[string]string{
			"QUOTAD_ADMIN_KEY_FILE": secret, "QUOTAD_LISTEN": "127.0.0.1:1", "QUOTAD_LANES": "7", "QUOTAD_DEMO": "true",
			"QUOTAD_DATABASE_URL": "", "QUOTAD_LOG_LEVEL": "debug", "QUOTAD_START_TIMEOUT": "7s",
			"QUOTAD_DEFAULT_PLAN": "free", "QUOTAD_ANONYMOUS_TTL": "90m",
		}[name]
		return value, ok
	}}
	command, _, err := p.parse([]string{"serve", "--listen=127.0.0.1:2"})
	if err != nil {
		t.Fatal(err)
	}
	s := command.(*settings)
	if s.AdminKey != "from-a-file-0123456789" || s.Listen != "127.0.0.1:2" || s.Lanes != 7 || !s.Demo || s.LogLevel != "debug" ||
		s.StartTimeout != 7*time.Second || *s.DefaultPlan != "free" || *s.AnonymousTTL != 90*time.Minute || s.IDRetention != nil || s.MaxQueue != 10_000 {
		t.Errorf("%+v", s)
	}
}

func TestBooleansFromTheEnvironment(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "1": true, "yes": true, "false": false, "0": false, "no": false, "": false} {
		p := program{lookupEnv: func(name string) (string, bool) {
			return map[string]string{"QUOTAD_DEMO": value}[name], true
		}}
		if command, _, err := p.parse([]string{"serve"}); err != nil || command.(*settings).Demo != want {
			t.Errorf("QUOTAD_DEMO=%s: %v", value, err)
		}
	}
}

// Whoever makes a key, or starts, hears in which database (and see testOneDataDirectoryOneQuotad).
// Webhooks of the demo may have private addresses only while no other machine reaches quotad.
func TestWhoseWebhooksMayBePrivate(t *testing.T) {
	for _, c := range []struct {
		listen     string
		demo, flag bool
		want       bool
	}{
		{"127.0.0.1:8080", true, false, true},
		{"[::1]:0", true, false, true},
		{"localhost:1", true, false, true},
		{"127.0.0.1:8080", false, false, false},
		{":8080", true, false, false},
		{"0.0.0.0:8080", true, false, false},
		{"quotad.internal:8080", true, false, false},
		{":8080", false, true, true},
	} {
		s := settings{listening: listening{Listen: c.listen}, Demo: c.demo, WebhookAllowPrivate: c.flag}
		if got := s.privateWebhooks(); got != c.want {
			t.Errorf("%+v: private webhooks %t", c, got)
		}
	}
}

func TestCommandsSayWhere(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	where := "the database " + postgres.Redact(n.databaseURL)
	if !strings.Contains(n.out.String(), "charges are in "+where+"\n") {
		t.Errorf("serve prints: %s", n.out)
	}
	for args, want := range map[string]string{
		"keys list": "The keys in " + where, "keys create --name=x --scope=read": "of scope read in " + where, "settings list": "The settings in " + where,
	} {
		if code, _, errs := cli(t, nil, append(strings.Fields(args), "--database-url="+n.databaseURL)...); code != 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", args, code, errs)
		}
	}
}

func TestKeyCommands(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(fixed("l", 5))
	env := map[string]string{"QUOTAD_DATABASE_URL": n.databaseURL}
	code, out, errs := cli(t, env, "keys", "create", "--name=ci", "--scope=backend")
	secret := strings.TrimSpace(out)
	if code != 0 || strings.ContainsAny(secret, " \n") {
		t.Fatalf("code %d: %q %s", code, out, errs)
	}
	n.hears()
	n.as(secret).hit(0).is(200)
	code, out, _ = cli(t, env, "keys", "list")
	if code != 0 || !strings.Contains(out, "backend") || !strings.Contains(out, "ci\n") || strings.Contains(out, secret) {
		t.Fatalf("code %d: %s", code, out)
	}
	id := ""
	for line := range strings.Lines(out) {
		if strings.HasSuffix(line, "ci\n") {
			id = strings.Fields(line)[0]
		}
	}
	if code, out, errs = cli(t, env, "keys", "revoke", id); code != 0 {
		t.Fatalf("code %d: %s %s", code, out, errs)
	}
	testkit.AtMost(t, "a revoked key is refused", n.hears(), within)
	n.as(secret).hit(0).is(401)
	if code, _, errs = cli(t, env, "keys", "revoke", "key_nothing"); code != 1 || !strings.Contains(errs, "keys list") {
		t.Errorf("code %d: %s", code, errs)
	}
	if code, _, errs = cli(t, env, "keys", "create", "--name=", "--scope=read"); code != 2 || !strings.Contains(errs, "--name") {
		t.Errorf("code %d: %s", code, errs)
	}
}

func TestMigrateCommands(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, pgtest.WithoutMigrations())
	env := map[string]string{"QUOTAD_DATABASE_URL": server.URL()}
	run := func(want int, says string, args ...string) {
		t.Helper()
		code, out, errs := cli(t, env, args...)
		if code != want || !strings.Contains(strings.Join(strings.Fields(out+errs), " "), says) {
			t.Errorf("quotad %s: code %d, not %d, or it does not say %q:\n%s%s", strings.Join(args, " "), code, want, says, out, errs)
		}
	}
	run(1, "quotad migrate up", "keys", "list")
	run(1, "quotad migrate up", "reconcile")
	run(0, "00001_changes_and_keys.sql no", "migrate", "status")
	run(0, "applied 00001_changes_and_keys.sql", "migrate", "up")
	run(0, "nothing to do", "migrate", "up")
	files, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil || !slices.IsSorted(files) {
		t.Fatal(files, err)
	}
	for _, name := range slices.Backward(files[4:]) {
		run(0, "took back "+name[:5], "migrate", "down", "--yes")
	}
	run(2, "DROP TABLE levels, usage, counters", "migrate", "down")
	run(0, "took back 00004", "migrate", "down", "--yes")
	run(2, "DROP TABLE erasures, forgotten", "migrate", "down")
	run(0, "applied 0", "migrate", "up")
	run(0, "00001_changes_and_keys.sql 20", "migrate", "status")
	run(0, `"ok": true`, "reconcile")
}

// What a build of before the first release may have left: tables of versions, without the files' fingerprints.
const earlierSchema = `CREATE TABLE migrations (id integer PRIMARY KEY, version_id bigint NOT NULL, is_applied boolean NOT NULL);
	INSERT INTO migrations SELECT n, n, true FROM generate_series(0, 34) n`

// Every command says what such a database is and what to do, and leaves it as it is.
func TestDatabaseOfBefore(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t, pgtest.WithoutMigrations())
	dir := dataDir(t)
	own, err := embedded.Start(testkit.Context(t), embedded.Options{DataDir: dir, NoSync: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	execSQL(t, server.URL(), earlierSchema)
	execSQL(t, own.URL(), earlierSchema)
	if err := own.Stop(testkit.Context(t)); err != nil {
		t.Fatal(err)
	}
	commands := []string{"serve --listen=127.0.0.1:0", "migrate up", "migrate down --yes", "migrate status", "keys list", "reconcile"}
	for _, command := range commands {
		code, out, errs := cli(t, nil, append(strings.Fields(command), "--database-url="+server.URL())...)
		if code != exitFailed || out != "" || !strings.Contains(errs, "of before the first release") || !strings.Contains(errs, "name it in --database-url") {
			t.Errorf("%s: code %d: %s%s", command, code, out, errs)
		}
	}
	for _, command := range commands[:2] {
		code, out, errs := cli(t, nil, append(strings.Fields(command), "--data-dir="+dir)...)
		if code != exitFailed || out != "" || !strings.Contains(errs, "the data directory "+dir+": the schema was made by another build of before") ||
			!strings.Contains(errs, "make db-reset CONFIRM=yes") {
			t.Errorf("%s: code %d: %s%s", command, code, out, errs)
		}
	}
	if n := query[int](t, server.URL(), `SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'`); n != 1 {
		t.Errorf("%d tables", n)
	}
}

// The schema is not taken away under a quotad that serves.
func TestMigrateDownWhileServing(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(fixed("l", 5))
	env := map[string]string{"QUOTAD_DATABASE_URL": n.databaseURL}
	if code, _, errs := cli(t, env, "migrate", "down", "--yes"); code != 1 || !strings.Contains(errs, "a quotad serves on this database") {
		t.Errorf("code %d: %s", code, errs)
	}
	n.hit(1).is(200)
	if err := n.stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(n.log.String(), "msg=stopped") {
		t.Errorf("the log does not end with stopped:\n%s", n.log)
	}
	if code, _, errs := cli(t, env, "migrate", "down", "--yes"); code != 0 {
		t.Errorf("code %d: %s", code, errs)
	}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(fixed("l", 100))
	n.hit(7).is(200)
	env := map[string]string{"QUOTAD_DATABASE_URL": n.databaseURL}
	check := func(want int) (report struct {
		OK     bool
		Checks []struct {
			Name     string
			Checked  int64
			Rows     int64
			Examples []map[string]any
		}
	},
	) {
		t.Helper()
		code, out, errs := cli(t, env, "reconcile")
		if code != want {
			t.Fatalf("code %d, not %d: %s%s", code, want, out, errs)
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatal(err)
		}
		return report
	}
	if r := check(0); !r.OK || r.Checks[0].Checked != 1 || r.Checks[0].Rows != 0 || len(r.Checks[0].Examples) != 0 {
		t.Errorf("%+v", r)
	}
	const tamper = `UPDATE counters SET units = units - 1 RETURNING 1`
	query[int](t, n.databaseURL, tamper)
	if r := check(1); r.OK || r.Checks[0].Rows != 1 ||
		fmt.Sprint(r.Checks[0].Examples) != "[map[customer:acme detail:7 units were charged. Booked are 0 in finished hours and 6 in the running one. expected:7 found:6 meter:requests]]" {
		t.Errorf("%+v", r)
	}
	query[int](t, n.databaseURL, `INSERT INTO usage (shard, customer, meter, hour, admitted) SELECT shard, customer, meter, 0, 1 FROM counters RETURNING 1`)
	check(0)
	query[int](t, n.databaseURL, `INSERT INTO usage (shard, customer, meter, hour, admitted) VALUES (1, 77, 88, 0, 5) RETURNING 1`)
	if r := check(0); r.Checks[0].Checked != 2 {
		t.Errorf("the usage of a customer that was forgotten: %+v", r)
	}
	query[int](t, n.databaseURL, `INSERT INTO usage (shard, customer, meter, hour, admitted) SELECT shard, customer, 88, 0, 5 FROM counters RETURNING 1`)
	if r := check(1); r.Checks[0].Rows != 1 ||
		fmt.Sprint(r.Checks[0].Examples) != "[map[customer:acme detail:0 units were charged. Booked are 5 in finished hours and 0 in the running one. expected:0 found:5 meter:id 88]]" {
		t.Errorf("usage without a counter: %+v", r)
	}
}
