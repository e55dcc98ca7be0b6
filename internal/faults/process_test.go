package faults

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quotad/internal/testkit"
)

const adminKey = "faults-admin-key-0123456789"

// build is the path of the binary that tests' processes run. It is made once, and stays in the
// repository's bin, where the next run finds it up to date.
func build(t testing.TB) (binary string) {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

var built = sync.OnceValues(func() (binary string, err error) {
	if binary, err = filepath.Abs("../../bin/faults-test/quotad"); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "quotad/cmd/quotad")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as `make build`, whatever the tests need
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return binary, nil
})

// process is a running quotad.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	at     string        // the address that it serves on
	ended  chan struct{} // closed when it has ended
	out    text          // what it prints
	log    text
	client *http.Client // for /readyz
}

// launch starts the binary and waits until it is ready. One that ends because its way to
// the database broke is started again, as a supervisor would.
func launch(t testing.TB, binary, databaseURL string, flags ...string) *process {
	t.Helper()
	for try := 1; ; try++ {
		p := start(t, binary, databaseURL, flags...)
		testkit.Eventually(t, "quotad is ready", func() bool { return p.hasEnded() || p.ready() })
		if !p.hasEnded() {
			return p
		}
		if try == maxStarts {
			t.Fatalf("quotad ended %d times at its start: %s\n%s", try, p.cmd.ProcessState, p.log.String())
		}
	}
}

// maxStarts is how often quotad may be started until it serves.
const maxStarts = 10

func start(t testing.TB, binary, databaseURL string, flags ...string) *process {
	t.Helper()
	p := &process{t: t, ended: make(chan struct{}), client: &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}}
	p.cmd = exec.Command(binary, append([]string{
		"serve", "--listen=127.0.0.1:0", "--database-url=" + databaseURL, "--admin-key=" + adminKey,
	}, flags...)...)
	p.cmd.Env = cleanEnv()
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // why it ended is in ProcessState
		close(p.ended)
	}()
	t.Cleanup(func() {
		alive := !p.hasEnded()
		p.end(syscall.SIGKILL)
		if t.Failed() && alive {
			t.Logf("the end of quotad's log:\n%s", p.log.String())
		}
	})
	return p
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// served finds the address in what quotad prints when it serves.
var served = regexp.MustCompile(`serves on http://(\S+)`)

func (p *process) ready() bool {
	if p.at == "" {
		found := served.FindStringSubmatch(p.out.String())
		if found == nil {
			return false
		}
		p.at = found[1]
	}
	response, err := p.client.Get("http://" + p.at + "/readyz")
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// kill is kill -9. It must not have ended by itself.
func (p *process) kill() {
	p.t.Helper()
	if p.hasEnded() {
		p.t.Errorf("quotad ended by itself: %s\n%s", p.cmd.ProcessState, p.log.String())
	}
	p.end(syscall.SIGKILL)
}

// stop ends it in order.
func (p *process) stop() {
	p.t.Helper()
	p.end(syscall.SIGTERM)
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("quotad stopped with code %d:\n%s", code, p.log.String())
	}
}

func (p *process) end(signal os.Signal) {
	p.t.Helper()
	if p.hasEnded() {
		return
	}
	_ = p.cmd.Process.Signal(signal) // it may have ended meanwhile
	select {
	case <-p.ended:
	case <-time.After(testkit.Patience):
		p.t.Errorf("quotad did not end")
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// cleanEnv is this process's environment without settings of quotad.
func cleanEnv() (env []string) {
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "QUOTAD_") {
			env = append(env, entry)
		}
	}
	return env
}

// maxText bounds what is kept of a log.
const maxText = 64 << 10

// text keeps the end of what is written to it.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *text) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Write(p)
	if over := b.buf.Len() - maxText; over > 0 {
		b.buf.Next(over)
	}
	return len(p), nil
}

func (b *text) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
