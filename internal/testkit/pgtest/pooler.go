package pgtest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/testkit"
)

// Pooler is a PgBouncer in front of a private server. It ends with the test.
type Pooler struct {
	t       testing.TB
	ini     string
	sockets string // the directory of its socket, which only Reload uses
	port    string
	server  string // of its databases
	process *exec.Cmd
	holds   io.Closer // while it is open, the pooler runs
}

// poolerScript runs a pooler until the script's input ends, as it does when the test's process is
// gone.
const poolerScript = `(PATH=$PATH:/usr/sbin exec pgbouncer -q "$1") & read -r _; kill -TERM $!; wait $!`

// Pooler starts a PgBouncer on a port of its own, as it comes but for these settings.
func (s *Instance) Pooler(settings map[string]string) *Pooler {
	s.t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		s.t.Fatal("the server's URL cannot be read")
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	p := &Pooler{
		t: s.t, port: port, ini: filepath.Join(s.DataDir(), "pgbouncer-"+port+".ini"), sockets: u.Query().Get("host"),
		server: fmt.Sprintf("quotad = host=%s port=%s dbname=quotad user=quotad", u.Query().Get("host"), u.Query().Get("port")),
	}
	p.Configure(settings)
	p.start(s.DataDir())
	s.t.Cleanup(p.stop)
	return p
}

// Configure writes the pooler's settings. A pooler that runs reads them at Reload.
func (p *Pooler) Configure(settings map[string]string) {
	p.t.Helper()
	all := map[string]string{"listen_addr": "127.0.0.1", "listen_port": p.port, "auth_type": "any", "unix_socket_dir": p.sockets, "admin_users": "quotad"}
	maps.Copy(all, settings)
	var ini strings.Builder
	fmt.Fprintf(&ini, "[databases]\n%s\n[pgbouncer]\n", p.server)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&ini, "%s = %s\n", name, all[name])
	}
	if err := os.WriteFile(p.ini, []byte(ini.String()), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// start runs it as the user of the server, who alone may open the server's socket.
func (p *Pooler) start(dataDir string) {
	p.t.Helper()
	info, err := os.Stat(filepath.Join(dataDir, "pgdata"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.process = exec.CommandContext(context.Background(), "sh", "-c", poolerScript, "sh", p.ini)
	p.process.Stderr = p.t.Output()
	p.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if owner := info.Sys().(*syscall.Stat_t); os.Geteuid() == 0 && owner.Uid != 0 {
		p.process.SysProcAttr.Credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
		if err := os.Chown(p.ini, int(owner.Uid), int(owner.Gid)); err != nil {
			p.t.Fatal(err)
		}
	}
	if p.holds, err = p.process.StdinPipe(); err == nil {
		err = p.process.Start()
	}
	if err != nil {
		p.t.Fatalf("start a pooler: %v", err)
	}
	testkit.Eventually(p.t, "the pooler listens", func() bool {
		conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", "127.0.0.1:"+p.port)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
}

// Address is where the pooler listens.
func (p *Pooler) Address() string { return "127.0.0.1:" + p.port }

// URL is the server's database quotad by way of the pooler.
func (p *Pooler) URL() string { return "postgres://quotad@" + p.Address() + "/quotad?sslmode=disable" }

// Reload has the pooler read its settings, and certificates, again. It returns when that is done.
func (p *Pooler) Reload() {
	p.t.Helper()
	ctx := testkit.Context(p.t)
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%s user=quotad dbname=pgbouncer", p.sockets, p.port))
	if err != nil {
		p.t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // its console knows no other
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "RELOAD"); err != nil {
		p.t.Fatal(err)
	}
}

// stop ends it within a few seconds.
func (p *Pooler) stop() {
	late := time.AfterFunc(10*time.Second, func() { _ = syscall.Kill(-p.process.Process.Pid, syscall.SIGKILL) })
	defer late.Stop()
	_ = p.holds.Close()
	_ = p.process.Wait()
}
