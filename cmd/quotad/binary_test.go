package main

import (
	"bytes"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// TestBinary tries quotad as its users do.
func TestBinary(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){
		"Help": testBinaryPrintsHelp, "Demo": testDemo, "OneDataDirectoryOneQuotad": testOneDataDirectoryOneQuotad,
		"SecondSignal": testSecondSignalEndsAtOnce, "NoDescriptors": testNoDescriptors,
		"KilledWithItsServer": func(t *testing.T) { testKilledWithItsServer(t, 2) },
		"KilledUnderHits":     func(t *testing.T) { testKilledUnderHits(t, 4) },
		"LeastMemory":         func(t *testing.T) { testLeastMemory(t, 0, 40_000) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// TestMoreBinary runs the parts of TestBinary that depend on chance more often, and for longer.
func TestMoreBinary(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){
		"KilledWithItsServer": func(t *testing.T) { testKilledWithItsServer(t, 3) },
		"KilledUnderHits":     func(t *testing.T) { testKilledUnderHits(t, 16) },
		"LeastMemory":         func(t *testing.T) { testLeastMemory(t, 6*time.Second, math.MaxInt64) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// process is a running quotad with a PostgreSQL of its own.
type process struct {
	*testNode
	cmd    *exec.Cmd
	dir    string
	ended  chan struct{} // closed after the process has ended and cmd.ProcessState is set
	stderr pgtest.Log
}

// dataDir is a place for data that is not there yet.
func dataDir(t testing.TB) string {
	t.Helper()
	dir := pgtest.Dir(t)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// launch starts quotad on a data directory and waits until it is ready.
func launch(t testing.TB, dir string, flags ...string) *process {
	t.Helper()
	return launchProgram(t, testkit.Program(t), nil, dir, flags...)
}

// launchProgram is launch for another program, and with more in the environment.
func launchProgram(t testing.TB, program string, env []string, dir string, flags ...string) *process {
	t.Helper()
	address := freePort(t)
	p := &process{dir: dir, ended: make(chan struct{}), testNode: &testNode{t: t, url: "http://" + address, out: new(pgtest.Log), client: newClient()}}
	p.cmd = exec.Command(program, append([]string{"serve", "--listen=" + address, "--data-dir=" + dir}, flags...)...)
	p.cmd.Env = append(cleanEnv(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // why it ended is in ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.client.CloseIdleConnections()
		select {
		case <-p.ended:
		default:
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
			p.waitEnd()
		}
		if t.Failed() {
			t.Logf("quotad's log:\n%s", p.stderr.String())
		}
	})
	testkit.Eventually(t, "quotad is ready", func() bool {
		select {
		case <-p.ended:
			t.Fatalf("quotad ended: %s\n%s", p.cmd.ProcessState, p.stderr.String())
		default:
		}
		response, err := p.client.Get(p.url + "/readyz")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == 200
	})
	return p
}

func (p *process) waitEnd() {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(testkit.Patience):
		p.t.Error("quotad did not end")
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// postmaster is the process of the embedded server.
func (p *process) postmaster() int {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "pgdata", "postmaster.pid"))
	if err != nil {
		p.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(string(text), "\n", 2)[0]))
	if err != nil {
		p.t.Fatal(err)
	}
	return pid
}

// alive tells a process that runs from one that is gone, or that only waits for a parent
// to look at its end.
func alive(pid int) bool {
	if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil {
		return !strings.Contains(string(stat), ") Z ")
	}
	return syscall.Kill(pid, 0) == nil
}

// quotad runs the program to its end.
func quotad(t testing.TB, args ...string) (code int, out, errs string) {
	t.Helper()
	cmd := exec.CommandContext(testkit.Bounded(t), testkit.Program(t), args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = cleanEnv(), &stdout, &stderr
	_ = cmd.Run() // the exit code says it
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// curlLine waits for the line to paste, and returns it with the lines it goes on. What quotad printed arrives a moment
// after it was printed.
func (p *process) curlLine() string {
	p.t.Helper()
	testkit.Eventually(p.t, "a curl line is printed", func() bool { return strings.Contains(p.out.String(), "\ncurl ") })
	out := p.out.String()
	at, line := strings.Index(out, "\ncurl "), ""
	for part := range strings.Lines(out[at+1:]) {
		line += part
		if !strings.HasSuffix(part, "\\\n") {
			break
		}
	}
	return line
}

// paste does what the curl line does, without curl where there is none.
func (p *process) paste(line string) *answer {
	p.t.Helper()
	quoted := strings.Split(line, "'") // URL is outside of quotes, the rest within
	url := strings.Fields(quoted[0])[2]
	var headers []string
	for i := 1; i+2 < len(quoted); i += 2 {
		headers = append(headers, quoted[i])
	}
	a := p.do("POST", strings.TrimPrefix(url, p.url), quoted[len(quoted)-2], headers...)
	if curl, err := exec.LookPath("curl"); err == nil {
		out, err := exec.Command("bash", "-c", strings.Replace(line, "curl", curl, 1)).Output()
		if err != nil || !bytes.Contains(out, []byte(`"allowed":`+map[bool]string{true: "true", false: "false"}[a.status == 200])) {
			p.t.Errorf("curl: %s %v", out, err)
		}
	}
	return a
}

func testBinaryPrintsHelp(t *testing.T) {
	if code, out, errs := quotad(t); code != 0 || errs != "" || !strings.Contains(out, "Usage: quotad <command>") {
		t.Errorf("code %d:\n%s%s", code, out, errs)
	}
	if code, out, _ := quotad(t, "version"); code != 0 || out != "quotad "+testkit.ProgramVersion+"\n" {
		t.Errorf("code %d: %s", code, out)
	}
}

// From an empty directory to an admitted hit, and again after a restart, which leaves what
// was edited meanwhile as it is.
func testDemo(t *testing.T) {
	dir := dataDir(t)
	p := launch(t, dir, "--demo")
	p.paste(p.curlLine()).is(200).has("allowed", true).has("limits.0.name", "hourly").has("limits.0.limit", 5000).
		has("limits.1.name", "daily").has("limits.1.limit", 200).has("limits.1.algorithm", "token_bucket")
	info, err := os.Stat(filepath.Join(dir, demoKeyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v %v", info, err)
	}
	secret, err := readDemoKey(filepath.Join(dir, demoKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(p.stderr.String(), secret) {
		t.Error("the admin key is in the log")
	}
	admin := p.as(secret)
	seller := admin.do("GET", "/v1/sellers/default", "").is(200).has("name", demoSeller)
	admin.do("PUT", "/v1/sellers/default", `{"name":"Us"}`, "If-Match: "+seller.header.Get("ETag")).is(200)
	body := strings.Replace(planOf(daily), "200", "77", 1)
	admin.do("PUT", "/v1/plans/demo", body, "If-Match: *").is(201)
	admin.do("PUT", "/v1/customers/acme", `{"name":"Mine","plan":"demo","timezone":"Asia/Tokyo"}`, "If-Match: *").is(200)
	p.stopWith(syscall.SIGTERM, 0)

	p = launch(t, dir, "--demo")
	p.paste(p.curlLine()).is(200).has("limits.0.limit", 77).has("limits.1", nil)
	admin = p.as(secret)
	admin.do("GET", "/v1/customers/acme", "").is(200).has("name", "Mine").has("timezone", "Asia/Tokyo")
	admin.do("GET", "/v1/plans/demo", "").is(200).has("version", 2)
	admin.do("GET", "/v1/sellers/default", "").is(200).has("name", "Us")
	// Its key was revoked: the next start makes another one.
	admin.do("DELETE", "/v1/keys/"+admin.do("GET", "/v1/keys", "").is(200).str("items.0.id"), "").is(204)
	p.stopWith(syscall.SIGINT, 0)
	p = launch(t, dir, "--demo")
	p.paste(p.curlLine()).is(200)
	p.stopWith(syscall.SIGHUP, 0)
}

// stopWith ends the process by a signal and makes sure that nothing of it is left.
func (p *process) stopWith(sig syscall.Signal, code int) {
	p.t.Helper()
	server := p.postmaster()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
	p.waitEnd()
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, not %d\n%s", got, code, p.stderr.String())
	}
	if log := p.stderr.String(); code == 0 && (strings.Contains(log, "57P01") || !strings.HasSuffix(log, "msg=stopped\n")) {
		p.t.Errorf("it did not stop quietly:\n%s", log)
	}
	if sig != syscall.SIGKILL && alive(server) {
		p.t.Error("its PostgreSQL still runs")
	}
	if _, err := os.Stat(filepath.Join(p.dir, "pgdata", "postmaster.pid")); code == 0 && !errors.Is(err, os.ErrNotExist) {
		p.t.Errorf("its PostgreSQL was not stopped in order: %v", err)
	}
}

// Killed in the middle of load together with its own PostgreSQL, and started again on the
// same directory, over and over: what was acknowledged is there, what is there was
// acknowledged or unknown, and limits hold. A kill that caught no hit on its way does not
// count.
func testKilledWithItsServer(t *testing.T, kills int) {
	t.Helper()
	dir := pgtest.DataDir(t)
	again := func() *process {
		p := launch(t, dir, "--admin-key="+testAdminKey)
		p.key = testAdminKey
		return p
	}
	p := again()
	wide, tight := &tally{customer: "acme", limit: 100_000_000}, &tally{customer: "tight", limit: 700}
	p.setUp(fixed("l", int(wide.limit), `"on_outage":"deny"`))
	p.do("PUT", "/v1/plans/tight", planOf(fixed("l", int(tight.limit), `"on_outage":"deny"`))).is(201)
	p.do("PUT", "/v1/customers/tight", strings.Replace(onPlan, "basic", "tight", 1)).is(201)
	for counted := 0; counted < kills; {
		enough := wide.acknowledged.Load() + 500
		wait := p.fire(16, nil, wide, tight)
		before := p.postmaster()
		testkit.Eventually(t, "hits are admitted", func() bool { return wide.acknowledged.Load() > enough })
		p.stopWith(syscall.SIGKILL, -1)
		wait()
		p.client.CloseIdleConnections()
		p = again()
		if alive(before) && before != p.postmaster() {
			t.Error("the killed quotad's PostgreSQL still runs")
		}
		if p.settle(wide, tight) > 0 {
			counted++
		}
	}
	if tight.refused.Load() == 0 {
		t.Error("the tight limit was never contested")
	}
	p.stopWith(syscall.SIGTERM, 0)
	if code, out, errs := quotad(t, "reconcile", "--data-dir="+dir); code != 0 {
		t.Errorf("reconcile: code %d\n%s%s", code, out, errs)
	}
}

func testOneDataDirectoryOneQuotad(t *testing.T) {
	dir := dataDir(t)
	if code, _, errs := quotad(t, "keys", "list", "--data-dir="+dir); code != 1 || !strings.Contains(errs, "quotad serve") {
		t.Errorf("keys list on nothing: code %d: %s", code, errs)
	}
	dir = pgtest.DataDir(t)
	p := launch(t, dir, "--admin-key="+testAdminKey)
	code, _, errs := quotad(t, "serve", "--listen=127.0.0.1:0", "--data-dir="+dir)
	if code != 1 || !strings.Contains(errs, "in use by another quotad") || !strings.Contains(errs, strconv.Itoa(p.cmd.Process.Pid)) {
		t.Errorf("a second quotad: code %d: %s", code, errs)
	}
	p.key = testAdminKey
	if said := p.do("GET", "/metrics", ""); !strings.Contains(string(said.raw), "\nquotad_disk_free_bytes ") {
		t.Errorf("the metrics do not say what is left on the disk: %d, %d bytes", said.status, len(said.raw))
	}
	// The other commands use the running one's server.
	code, secret, errs := quotad(t, "keys", "create", "--name=x", "--scope=admin", "--data-dir="+dir)
	if code != 0 || !strings.Contains(errs, "in the data directory "+dir) || !strings.Contains(p.out.String(), "are in the data directory "+dir) {
		t.Fatalf("keys create: code %d: %s, and serve: %s", code, errs, p.out)
	}
	n := p.as(strings.TrimSpace(secret))
	testkit.Eventually(t, "the new key works", func() bool { return n.do("GET", "/v1/keys", "").status == 200 })
	for _, args := range [][]string{{"keys", "list"}, {"migrate", "status"}, {"reconcile"}} {
		if code, _, errs := quotad(t, append(args, "--data-dir="+dir)...); code != 0 {
			t.Errorf("%v: code %d: %s", args, code, errs)
		}
	}
	p.stopWith(syscall.SIGTERM, 0)
	// Without a running one they start it for themselves.
	if code, out, errs := quotad(t, "keys", "list", "--data-dir="+dir); code != 0 || !strings.Contains(out, "bootstrap") {
		t.Errorf("keys list: code %d: %s%s", code, out, errs)
	}
	if _, err := os.Stat(filepath.Join(dir, demoKeyFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without --demo a key is kept: %v", err)
	}
}

func testSecondSignalEndsAtOnce(t *testing.T) {
	p := launch(t, pgtest.DataDir(t), "--admin-key="+testAdminKey, "--drain-delay=10m")
	server := p.postmaster()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "/readyz says that it is stopping", func() bool { return p.do("GET", "/readyz", "").status == 503 })
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.waitEnd()
	if code := p.cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d", code)
	}
	testkit.Eventually(t, "its PostgreSQL notices", func() bool { return !alive(server) })
}
