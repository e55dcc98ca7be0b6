package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// A gatewayKind is a gateway with a configuration of deploy/.
type gatewayKind struct {
	name  string
	files []string // in deploy/; the first is given to the program
	open  []string // what is replaced, and by what, so that all pass without quotad; nil: they do anyway
	run   func(dir, file string) *exec.Cmd
	// The statuses that clients see.
	nobodyKnown, suspended, wrongKey, away int
	limits                                 bool     // an admitted answer has RateLimit
	reach                                  []string // headers of a client that reach the app, as its configuration says
	keeps                                  bool     // connections to quotad, also when quotad refuses
	ids                                    []string // what is replaced, and by what, so that each request has an id
	again                                  bool     // with ids, a question is sent again when its answer is lost
}

const withIDs = "meter=requests&id=header"

var caddyIDs = []string{"meter=requests", withIDs, "# header_up X-Quotad-Id", "header_up X-Quotad-Id", "keepalive off", ""}

var gatewayKinds = []gatewayKind{
	{
		name: "nginx", files: []string{"nginx/quotad.conf"}, open: []string{"default 503;", "default 200;"}, run: nginx,
		nobodyKnown: 403, suspended: 403, wrongKey: 503, away: 503, limits: true,
		reach: []string{"X-Quotad-Attr-Team", "X-Quotad-Dry-Run"}, keeps: true,
		ids: []string{"meter=requests", withIDs, "# proxy_set_header X-Quotad-Id", "proxy_set_header X-Quotad-Id"},
	},
	{
		name: "Caddy, short", files: []string{"caddy/Caddyfile"}, open: []string{`respond "Try again later." 503`, "reverse_proxy 127.0.0.1:3000"}, run: caddy,
		nobodyKnown: 429, suspended: 429, wrongKey: 401, away: 503, ids: caddyIDs, again: true,
	},
	{
		name: "Caddy, long", files: []string{"caddy/Caddyfile.long"}, run: caddy,
		nobodyKnown: 429, suspended: 429, wrongKey: 401, away: 200, limits: true, ids: caddyIDs, again: true,
	},
	{
		name: "HAProxy", files: []string{"haproxy/haproxy.cfg", "haproxy/quotad.lua", "haproxy/customers.map"},
		open: []string{"http-request return status 503", "# http-request return status 503"}, run: haproxy,
		nobodyKnown: 429, suspended: 429, wrongKey: 503, away: 503, limits: true,
		ids: []string{"meter=requests", withIDs, `-- headers["x-quotad-id"]`, `headers["x-quotad-id"]`},
	},
}

func nginx(dir, file string) *exec.Cmd {
	conf := filepath.Join(dir, "nginx.conf")
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	text := fmt.Sprintf("%s daemon off; pid %[2]s/pid; error_log stderr; events {} http { access_log off; client_body_temp_path %[2]s/body; proxy_temp_path %[2]s/proxy;"+
		" fastcgi_temp_path %[2]s/f; uwsgi_temp_path %[2]s/u; scgi_temp_path %[2]s/s; client_max_body_size 10m; include %[3]s; }", user, dir, file)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		panic(err)
	}
	return exec.Command(installed("nginx"), "-c", conf, "-p", dir, "-e", "stderr")
}

func caddy(dir, file string) *exec.Cmd {
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append([]byte("{\n\tadmin off\n}\n"), text...), 0o600)
	}
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(installed("caddy"), "run", "--config", file, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	return cmd
}

func haproxy(_, file string) *exec.Cmd { return exec.Command(installed("haproxy"), "-f", file, "-db") }

// installed is where a program is; /usr/sbin is not on the path of every user.
func installed(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return "/usr/sbin/" + name
}

// An upstream is what a gateway passes requests on to.
type upstream struct {
	*httptest.Server
	mu    sync.Mutex
	seen  int
	heads []http.Header
}

func newUpstream(t *testing.T) *upstream {
	u := new(upstream)
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		_, _ = io.Copy(sum, r.Body)
		u.mu.Lock()
		u.seen++
		u.heads = append(u.heads, r.Header.Clone())
		u.mu.Unlock()
		w.Header().Set("RateLimit", `"app";r=1`)
		fmt.Fprintf(w, "%s %s %x", r.Method, r.RequestURI, sum.Sum(nil))
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.seen
}

// passes starts a gateway with the key that it asks quotad with, and returns its URL.
func (k *gatewayKind) passes(t *testing.T, n *testNode, u *upstream, key string, changes ...string) string {
	t.Helper()
	dir, address := t.TempDir(), freePort(t)
	_, port, _ := net.SplitHostPort(address)
	addresses := strings.NewReplacer("127.0.0.1:8080", strings.TrimPrefix(n.url, "http://"), "127.0.0.1:3000", strings.TrimPrefix(u.URL, "http://"),
		"127.0.0.1:8000", address, ":8000 {", ":"+port+" {", "qk_replace_this", key)
	changed, all := strings.NewReplacer(changes...), ""
	for _, file := range k.files {
		text, err := os.ReadFile("../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(addresses.Replace(changed.Replace(string(text)))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(all, changes[i]) {
			t.Fatalf("the configuration of %s does not have %q", k.name, changes[i])
		}
	}
	cmd, log := k.run(dir, filepath.Join(dir, filepath.Base(k.files[0]))), new(pgtest.Log)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(5 * time.Second): // nothing is lost
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s says:\n%s", k.name, log)
		}
	})
	testkit.Eventually(t, k.name+" listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		_ = conn.Close()
		return true
	})
	return "http://" + address
}

// through sends a request through a gateway as a client.
func through(t *testing.T, client *http.Client, method, url, apiKey, body string, headers ...string) (int, http.Header, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if apiKey != "" {
		r.Header.Set("X-Api-Key", apiKey)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

// TestGateways has real gateways ask, by the configurations of deploy/: who is admitted, refused and
// charged, what a hostile client gains, and what happens without quotad.
func TestGateways(t *testing.T) { gateways(t, 25) }

// TestMoreGateways sends the rest of the requests.
func TestMoreGateways(t *testing.T) { gateways(t, 225) }

// gateways sends so many requests on each of four connections of each gateway.
func gateways(t *testing.T, each int) {
	t.Helper()
	t.Parallel()
	for _, k := range gatewayKinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			n, u := start(t, ""), newUpstream(t)
			n.do("PUT", "/v1/meters/cheap", `{"unit":"x"}`).is(201)
			n.setUp(fixed("hourly", 5))
			_, key := n.newKey("backend")
			at, client := k.passes(t, n, u, key), newClient()
			defer client.CloseIdleConnections()
			ask := func(apiKey, method, path, body string, headers ...string) (int, http.Header, string) {
				t.Helper()
				return through(t, client, method, at+path, apiKey, body, headers...)
			}
			k.admits(t, n, u, ask)
			k.refuses(t, n, u, ask)
			k.between(t, n, u, key, func() { k.many(t, n, at, each) })
			k.withoutQuotad(t, n, u, key)
		})
	}
}

type asking func(apiKey, method, path, body string, headers ...string) (int, http.Header, string)

// usedBy is what acme used of the limit.
func usedBy(n *testNode) string {
	n.t.Helper()
	return fmt.Sprint(n.do("GET", "/v1/customers/acme/quota", "").is(200).at("limits.0.used"))
}

func (k *gatewayKind) admits(t *testing.T, n *testNode, u *upstream, ask asking) {
	t.Helper()
	status, header, text := ask("key-of-acme", "GET", "/orders?a=1", "")
	if status != 200 || !strings.HasPrefix(text, "GET /orders?a=1 ") || k.limits && (len(header["Ratelimit"]) != 1 || !strings.Contains(header.Get("RateLimit"), `"hourly";r=4`)) {
		t.Errorf("admitted: %d %v %s", status, header, text)
	}
	body := string(bytes.Repeat([]byte("0123456789"), 30_000))
	if status, _, text := ask("key-of-acme", "POST", "/upload", body); status != 200 || text != fmt.Sprintf("POST /upload %x", sha256.Sum256([]byte(body))) {
		t.Errorf("a body: %d %s", status, text)
	}
	for range 3 { // an id that counted would charge once
		status, _, text := ask("key-of-acme", "GET", "/orders?dry_run=true&meter=cheap&cost=0&deny_status=200", "",
			"X-Quotad-Key", "forged", "X-Quotad-Customer", `neo","cost":0`, "X-Quotad-Meter", "cheap", "X-Quotad-Cost", "0", "X-Quotad-Id", "one",
			"X-Quotad-Attr-Ip", "1", "X_Quotad_Customer", "neo", "X.QUOTAD.Customer", "neo", "X-Quotad_Cost", "0", "X!Quotad!Customer", "neo",
			"X-Quotad-Attr-Team", "red", "X_Quotad_Attr_Team", "red", "X.Quotad.Dry.Run", "true", "X-Quotad-Reason", "quota", "X-Quotad-Detail", "no",
			"X-Quotad-Dry-Run", "true", "Idempotency-Key", "one", "Authorization", "Bearer forged")
		if status != 200 {
			t.Errorf("a hostile client: %d %s", status, text)
		}
	}
	if got := usedBy(n); got != "5" {
		t.Errorf("%s units were charged for 5 requests", got)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.seen != 5 {
		t.Errorf("the app saw %d requests", u.seen)
	}
	for _, head := range u.heads {
		for name := range head {
			if strings.Contains(strings.ToLower(name), "quotad") && !slices.Contains(k.reach, name) {
				t.Errorf("the app sees %s: %s", name, head[name])
			}
		}
	}
}

func (k *gatewayKind) refuses(t *testing.T, n *testNode, u *upstream, ask asking) {
	t.Helper()
	status, header, text := ask("key-of-acme", "GET", "/", "")
	if status != 429 || header.Get("Retry-After") == "" || !strings.Contains(header.Get("RateLimit"), `"hourly";r=0`) ||
		!strings.Contains(text, "Limit hourly is used up.") {
		t.Errorf("refused: %d %v %s", status, header, text)
	}
	if status, _, _ := ask("", "GET", "/", ""); status != 401 {
		t.Errorf("nobody: %d", status)
	}
	if status, _, _ := ask("key-of-neo", "GET", "/", ""); status != k.nobodyKnown {
		t.Errorf("an unknown customer: %d", status)
	}
	n.do("PUT", "/v1/customers/acme/suspension", `{"reason":"überfällig: 5 €"}`).is(200)
	status, header, text = ask("key-of-acme", "GET", "/", "")
	kind := header.Get("Content-Type")
	if kind != "application/problem+json" && kind != "text/plain; charset=utf-8" || status != k.suspended || !strings.Contains(text, "überfällig: 5 €") {
		t.Errorf("suspended: %d %v %s", status, header, text)
	}
	n.do("DELETE", "/v1/customers/acme/suspension", "").is(204)
	if seen := u.count(); seen != 5 {
		t.Errorf("the app saw %d requests that were refused", seen-5)
	}
}

// many sends that many requests on each of four connections.
func (k *gatewayKind) many(t *testing.T, n *testNode, at string, each int) {
	t.Helper()
	var admitted atomic.Int64
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			client := newClient()
			defer client.CloseIdleConnections()
			for range each {
				if status, _, _ := through(t, client, "GET", at+"/", "key-of-acme", ""); status == 200 {
					admitted.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if got, all := usedBy(n), int64(4*each); admitted.Load() != all || got != strconv.FormatInt(all+5, 10) {
		t.Errorf("%d of %d requests were admitted; used is %s", admitted.Load(), all, got)
	}
}
