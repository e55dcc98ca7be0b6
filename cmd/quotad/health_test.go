package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// askedHealth runs `quotad health`.
func askedHealth(t *testing.T, env map[string]string, args ...string) (code int, out, errs string) {
	t.Helper()
	return cli(t, env, append([]string{"health"}, args...)...)
}

// health asks the node of the same settings, from all addresses and by IPv4 or IPv6; its exit code
// is what /readyz says.
func TestHealth(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--listen=:0", "--drain-delay=1m")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(n.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{":", "0.0.0.0:", "[::]:", "127.0.0.1:", "[::1]:"} {
		if code, out, errs := askedHealth(t, nil, "--listen="+address+port); code != 0 || out != `{"status":"ready"}`+"\n" {
			t.Errorf("%s: code %d: %s%s", address, code, out, errs)
		}
	}
	env := map[string]string{"QUOTAD_LISTEN": ":" + port, "QUOTAD_DATABASE_URL": n.databaseURL}
	if code, _, errs := askedHealth(t, env); code != 0 {
		t.Errorf("by the environment: code %d: %s", code, errs)
	}
	ended := make(chan error, 1)
	go func() { ended <- n.stop() }()
	testkit.Eventually(t, "a node that stops is not ready", func() bool {
		code, _, errs := askedHealth(t, env)
		return code == 1 && strings.Contains(errs, "503") && strings.Contains(errs, "stopping")
	})
	n.endDrain()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if code, _, errs := askedHealth(t, env); code != 1 || !strings.Contains(errs, "refused") {
		t.Errorf("nobody there: code %d: %s", code, errs)
	}
	for _, address := range []string{":0", "here"} {
		if code, _, errs := askedHealth(t, nil, "--listen="+address); code != 2 || !strings.Contains(errs, "--listen") {
			t.Errorf("%s: code %d: %s", address, code, errs)
		}
	}
}

// A process that listens and answers nothing is not healthy, and keeps no check waiting.
func TestHealthOfWhatIsSilent(t *testing.T) {
	t.Parallel()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	began := time.Now()
	if code, _, errs := askedHealth(t, nil, "--listen="+silent.Addr().String()); code != 1 {
		t.Errorf("code %d: %s", code, errs)
	}
	testkit.AtMost(t, "a check of what is silent", time.Since(began), healthLimit+time.Second)
}

// The image and the compose file say what quotad understands, and are built from all that quotad is
// made of.
func TestContainerFiles(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	image, compose, builder := read("Dockerfile"), read("docker-compose.yml"), read(".dockerignore")
	for text, all := range map[string][]string{
		image: {
			"\nFROM scratch\n", "carries nothing but quotad", "no shell and no PostgreSQL",
			"\nENV QUOTAD_LISTEN=:8080\n", "\nEXPOSE 8080\n", "\nHEALTHCHECK ", `CMD ["/quotad", "health"]`, `ENTRYPOINT ["/quotad"]`,
		},
		compose: {
			"test: [CMD, /quotad, health]", "condition: service_healthy", "pg_isready", "mem_limit: ", "stop_grace_period: ",
		},
	} {
		for _, want := range all {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing", want)
			}
		}
	}
	if n := strings.Count(compose, "healthcheck:"); n != 2 {
		t.Errorf("%d of 2 services have a health check", n)
	}
	// The check waits longer than health does.
	for _, text := range []string{image, compose[strings.Index(compose, "/quotad, health"):]} {
		timeout := regexp.MustCompile(`timeout[=:] ?(\S+)`).FindStringSubmatch(text)
		if timeout == nil {
			t.Fatal("the check has no timeout")
		}
		if limit, err := time.ParseDuration(timeout[1]); err != nil || limit <= healthLimit {
			t.Errorf("the check ends after %v, before health does: %v", limit, err)
		}
	}
	// Each variable is a setting.
	var environ []string
	for _, found := range regexp.MustCompile(`QUOTAD_[A-Z_]+`).FindAllString(image+compose, -1) {
		if found != "QUOTAD_DB_PASSWORD" { // of the compose file itself
			environ = append(environ, found+"=x")
		}
	}
	p := program{stdout: new(strings.Builder), stderr: new(strings.Builder), lookupEnv: noEnv, environ: func() []string { return environ }}
	if _, _, err := p.parse([]string{"version"}); err != nil || len(p.unknown) > 0 || len(environ) < 3 {
		t.Errorf("of %v unknown are %v: %v", environ, p.unknown, err)
	}
	// Each package that quotad is made of goes to the builder.
	list, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for path := range strings.Lines(string(list)) {
		if room, ok := strings.CutPrefix(strings.TrimSpace(path), "quotad/"); ok {
			ours++
			if top, _, _ := strings.Cut(room, "/"); !strings.Contains(builder, "\n!"+top+"\n") {
				t.Errorf("%s does not go to the builder: .dockerignore leaves %s out", room, top)
			}
		}
	}
	if ours < 20 {
		t.Errorf("only %d packages", ours)
	}
}
