package pgtest

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres/embedded"
	"quotad/internal/testkit"
)

// Replica is a copy of a server that streams from it, asynchronously, until Fall or Promote. It
// ends with the test.
type Replica struct {
	t          testing.TB
	programs   string
	dir        string // of its data and its socket
	credential *syscall.Credential
	database   *url.URL // of the first server's database, as its owner
	admin      *url.URL
	cmd        *exec.Cmd
	ended      chan struct{}
	log        Log
}

// Replica makes a replica of the server, which then takes connections of replicas.
func (s *Instance) Replica() *Replica {
	s.t.Helper()
	programs, err := embedded.FindPrograms(testkit.Context(s.t), "", 0, slog.New(slog.DiscardHandler))
	if err != nil {
		s.t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(s.DataDir(), "pgdata"))
	if err != nil {
		s.t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if err := os.WriteFile(filepath.Join(s.DataDir(), "pg_hba.conf"), []byte(replicaAccess), 0o644); err != nil { //nolint:gosec // the server's user reads it
		s.t.Fatal(err)
	}
	// The copy has none of the log: it is still there when the replica asks for it.
	Exec(s.t, s.AdminURL(), "ALTER SYSTEM SET wal_keep_size = '1GB'", "SELECT pg_reload_conf()")
	r := &Replica{t: s.t, programs: programs.Dir}
	if os.Getuid() == 0 {
		r.credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	return r.of(s.URL(), s.AdminURL())
}

// replicaAccess lets anybody in who may open the socket, replicas too.
const replicaAccess = "local all all trust\nlocal replication all trust\n"

// Replica makes a replica of a replica that was promoted.
func (r *Replica) Replica() *Replica {
	r.t.Helper()
	next := &Replica{t: r.t, programs: r.programs, credential: r.credential}
	return next.of(r.URL(), r.AdminURL())
}

// of copies the server of two URLs, and starts streaming.
func (r *Replica) of(database, admin string) *Replica {
	r.t.Helper()
	r.dir = Dir(r.t)
	r.own(r.dir)
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	data := filepath.Join(r.dir, "pgdata")
	r.copyOf(ctx, admin, data)
	for name, text := range map[string]string{"hba.conf": replicaAccess, "server.conf": strings.ReplaceAll(replicaSettings, "DIR", r.dir)} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // the server's user reads it
			r.t.Fatal(err)
		}
	}
	r.database, r.admin = r.here(database), r.here(admin)
	r.cmd = exec.Command( //nolint:noctx // Crash ends it
		filepath.Join(r.programs, "postgres"), "-D", data, "-c", "config_file="+filepath.Join(r.dir, "server.conf"))
	r.dress(r.cmd)
	r.cmd.Stdout, r.cmd.Stderr = &r.log, &r.log
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.ended = make(chan struct{})
	go func() {
		_ = r.cmd.Wait() // Crash ends it
		close(r.ended)
	}()
	r.t.Cleanup(r.Crash)
	r.await("it streams", func(ctx context.Context) bool {
		streams, err := TryQuery[bool](ctx, r.AdminURL(), "SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')")
		return err == nil && streams
	})
	return r
}

// copyOf makes a base backup of the server at data, and has it stream from that server.
//
// It goes by SQL, since not each package of a server has pg_basebackup.
func (r *Replica) copyOf(ctx context.Context, admin, data string) {
	r.t.Helper()
	c, err := pgx.Connect(ctx, admin)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }() // the copy is made or it is not
	var source, label string
	if err := c.QueryRow(ctx, "SELECT current_setting('data_directory'), pg_backup_start('replica', true)::text").Scan(&source, nil); err != nil {
		r.t.Fatal(err)
	}
	// Files may change or end while they are copied: replay mends that.
	cp := exec.CommandContext(ctx, "sh", "-ec",
		`mkdir -m 700 "$2"; tar -C "$1" --exclude='./pg_wal/*' --exclude=./postmaster.pid -cf - . | tar -C "$2" -xf -`, "sh", source, data)
	r.dress(cp)
	if out, err := cp.CombinedOutput(); err != nil {
		r.t.Fatalf("%s is copied: %v: %s", source, err, out)
	}
	if err := c.QueryRow(ctx, "SELECT labelfile FROM pg_backup_stop(false)").Scan(&label); err != nil {
		r.t.Fatal(err)
	}
	config := c.Config()
	for name, text := range map[string]string{
		"backup_label": label, "standby.signal": "",
		"postgresql.auto.conf": fmt.Sprintf("primary_conninfo = 'host=%s port=%d user=%s'\n", config.Host, config.Port, config.User),
	} {
		path := filepath.Join(data, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
		r.own(path)
	}
}

// own gives a file to the server's user, who may be another one than the tests'.
func (r *Replica) own(path string) {
	r.t.Helper()
	if r.credential == nil {
		return
	}
	if err := os.Chown(path, int(r.credential.Uid), int(r.credential.Gid)); err != nil {
		r.t.Fatal(err)
	}
}

// replicaSettings are those that the first server has, where they matter. One connection to it is
// for replicas.
const replicaSettings = `
listen_addresses = ''
unix_socket_directories = 'DIR'
hba_file = 'DIR/hba.conf'
max_connections = 100
shared_buffers = 64MB
wal_compression = off
update_process_title = off
timezone = UTC
log_timezone = UTC
lc_messages = C
`

func (r *Replica) dress(cmd *exec.Cmd) {
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC", "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: r.credential}
}

// here is the URL of the same database and role on this server.
func (r *Replica) here(databaseURL string) *url.URL {
	r.t.Helper()
	c, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		r.t.Fatal(err)
	}
	u := &url.URL{Scheme: "postgres", User: url.User(c.User), Path: "/" + c.Database}
	u.RawQuery = url.Values{"host": {r.dir}, "port": {"5432"}}.Encode()
	return u
}

func (r *Replica) await(what string, is func(context.Context) bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	for !is(ctx) {
		select {
		case <-r.ended:
			r.t.Fatalf("%s: the replica ended:\n%s", what, r.log.String())
		case <-ctx.Done():
			r.t.Fatalf("%s: not in time:\n%s", what, r.log.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// URL is the database quotad as its owner.
func (r *Replica) URL() string { return r.database.String() }

// AdminURL is the maintenance database as superuser.
func (r *Replica) AdminURL() string { return r.admin.String() }

// Fall ends the streaming: what the server writes from now on, the replica does not get.
func (r *Replica) Fall() {
	r.t.Helper()
	Exec(r.t, r.AdminURL(), "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
	r.await("it streams no more", func(ctx context.Context) bool {
		none, err := TryQuery[bool](ctx, r.AdminURL(), "SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)")
		return err == nil && none
	})
}

// Promote makes it a server of its own. It returns when it takes writes.
func (r *Replica) Promote() {
	r.t.Helper()
	if !Query[bool](r.t, r.AdminURL(), fmt.Sprintf("SELECT pg_promote(true, %d)", int(testkit.Patience.Seconds()))) {
		r.t.Fatalf("the replica was not promoted:\n%s", r.log.String())
	}
}

// Crash ends it at once.
func (r *Replica) Crash() {
	r.t.Helper()
	_ = r.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
	select {
	case <-r.ended:
	case <-time.After(testkit.Patience):
		_ = r.cmd.Process.Kill()
		r.t.Errorf("a replica did not end:\n%s", r.log.String())
	}
}
