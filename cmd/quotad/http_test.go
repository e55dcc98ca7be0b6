package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"quotad/internal/testkit"
)

func TestUnknownRoutesAndMethods(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.do("GET", "/v1/hits", "").is(405).has("type", "/problems/method-not-allowed").headerIs("Allow", "POST")
	n.do("PATCH", "/v1/plans/x", "").is(405).headerIs("Allow", "GET, HEAD, PUT")
	n.do("DELETE", "/livez", "").is(405).headerIs("Allow", "GET, HEAD")
	n.do("GET", "/v1/nothing", "").is(404).has("type", "/problems/not-found")
	n.do("HEAD", "/livez", "").is(200)
	n.do("GET", "/livez", "").is(200).has("status", "ok").headerIs("Content-Type", "application/json")
	for _, page := range []string{"/docs", "/problems/invalid"} {
		if a := n.as("").do("GET", page, "").is(200); !strings.Contains(string(a.raw), "<html") {
			t.Errorf("%s is no page", page)
		}
	}
}

// Every type that a problem may have is documented where it points to.
func TestProblemTypesAreDocumented(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	for _, name := range []string{
		"not-json", "unauthorized", "wrong-scope", "not-in-plan", "not-found", "method-not-allowed",
		"precondition-failed", "too-large", "unsupported-media-type", "invalid", "precondition-required", "too-busy",
		"database-unavailable", "outcome-unknown", "not-ready", "request-timeout",
	} {
		n.as("").do("GET", "/problems/"+name, "").is(200)
	}
	n.do("GET", "/problems/nothing", "").is(404)
}

// A client that dawdles is cut off, in the head of its request and in the body, and so is
// one that sends too much; others do not notice.
func TestSlowAndChattyClientsAreCut(t *testing.T) {
	t.Parallel()
	writer := start(t, "", "--close-delay=1h") // else billing writes, ten seconds after a customer was made
	writer.setUp(hourly)
	n := startBrief(t, writer.databaseURL)
	idle := &rawClient{address: strings.TrimPrefix(n.url, "http://"), request: "GET /livez HTTP/1.1\r\nHost: quotad\r\n\r\n"}
	defer idle.close()
	if status, err := idle.hit(); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	before := stored(t, n.databaseURL)
	auth := "Authorization: Bearer " + n.key + "\r\n"
	head := "POST /v1/hits HTTP/1.1\r\nHost: quotad\r\nContent-Type: application/json\r\n" + auth
	clients := []struct {
		name, sends, answer string
		within              time.Duration
	}{
		{"says nothing", "", "", 15 * time.Second},
		{"stops in the head", "POST /v1/hits HTTP/1.1\r\nHost: quo", "", 15 * time.Second},
		{"stops in the body", head + "Content-Length: 100\r\n\r\n{\"customer\":\"acme\",", "408", 20 * time.Second},
		{"has a huge head", head + "X-Filler: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "431", 5 * time.Second},
		{"announces a huge body", head + "Content-Length: 999999999\r\n\r\n{", "413", 5 * time.Second},
		{
			"sends a huge body in chunks", head + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1000\r\n"+strings.Repeat("x", 0x1000)+"\r\n", 20),
			"413", 15 * time.Second,
		},
	}
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			conn, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			began := time.Now()
			_ = conn.SetDeadline(began.Add(testkit.Patience))
			_, _ = io.WriteString(conn, c.sends) // it may be cut off while it still sends
			answer, err := io.ReadAll(bufio.NewReader(conn))
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: not cut off", c.name)
			}
			testkit.AtMost(t, "one who "+c.name, time.Since(began), c.within)
			line, _, _ := strings.Cut(string(answer), "\r\n")
			if c.answer != "" && !strings.HasPrefix(line, "HTTP/1.1 "+c.answer) {
				t.Errorf("%s: answered %q, not %s", c.name, line, c.answer)
			}
		})
	}
	dawdling := make(chan struct{})
	go func() { all.Wait(); close(dawdling) }()
	served := 0
	testkit.Eventually(t, "all of them are cut off", func() bool {
		a, err := n.try("POST", "/v1/hits", hitOf("acme", "requests", `,"cost":0`))
		select {
		case <-dawdling:
			return true
		case <-time.After(100 * time.Millisecond):
		}
		// On a machine that stalls, the node's own deadlines may end a hit, too.
		if err == nil && a.status == 200 {
			served++
		}
		return false
	})
	if served == 0 {
		t.Error("meanwhile no hit was answered")
	}
	// Who has asked before may be idle for longer.
	if conn := idle.conn; conn == nil {
		t.Error("an idle client was told to go")
	} else if status, err := idle.hit(); err != nil || status != 200 || idle.conn != conn {
		t.Errorf("an idle client was cut off, too: %d, %v", status, err)
	}
	if stored(t, n.databaseURL) != before {
		t.Error("something was charged or stored")
	}
}

func TestTLSAndMetricsListener(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := selfSigned(t, dir)
	n := start(t, "", "--tls-cert="+cert, "--tls-key="+key, "--metrics-listen=127.0.0.1:0")
	if !strings.HasPrefix(n.url, "https://") {
		t.Fatal(n.url)
	}
	n.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	n.client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	if a := n.do("GET", "/livez", "").is(200); a.proto != "HTTP/2.0" {
		t.Errorf("over TLS it speaks %s", a.proto)
	}
	n.setUp(fixed("l", 1))
	n.hit(1).is(200)
	n.hit(1).is(429)
	n.do("GET", "/metrics", "").is(404)
	metrics := n.node.front.urls[1]
	response, err := n.client.Get(metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 {
		t.Fatal(response.Status, err)
	}
	for _, name := range []string{
		"quotad_build_info", "quotad_engine_batches_total", "quotad_engine_refused_from_memory_total",
		"quotad_customers_evicted_total", "quotad_counters_removed_total", "quotad_events_numbered_total", "quotad_webhook_attempts_total",
		"quotad_clock_age_seconds", "quotad_clock_offset_seconds", "quotad_clock_steps_total", "quotad_pool_connections", "quotad_body_memory_bytes",
		"quotad_body_memory_limit_bytes",
		"quotad_body_memory_refused_total", "quotad_body_memory_over_share_total", "quotad_engine_refusals_lost_total", "quotad_engine_over_share_total",
		"quotad_batches_over_share_total", "quotad_engine_new_values_refused_total", "quotad_failed_keys_total", "quotad_billing_periods_closed_total",
		"quotad_billing_invoices_finalized_total", "quotad_billing_failed_total", "quotad_billing_blocked", "quotad_billing_oldest_due_seconds",
		"go_goroutines",
	} {
		if !strings.Contains(string(text), "\n"+name) {
			t.Errorf("no metric %s", name)
		}
	}
	// Plain HTTP on the TLS port is told so.
	response, err = n.client.Get("http" + strings.TrimPrefix(n.url, "https") + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 400 {
		t.Errorf("plain HTTP: %s", response.Status)
	}
}

// selfSigned makes a certificate for 127.0.0.1.
func selfSigned(t testing.TB, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "quotad"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: privateDER}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
}

// Stopping: no longer ready, requests under way end, then nobody answers.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--drain-delay=1m")
	n.setUp(fixed("l", 1_000_000))
	stopped := make(chan error, 1)
	go func() { stopped <- n.stop() }()
	testkit.Eventually(t, "/readyz says that it is stopping", func() bool {
		a := n.do("GET", "/readyz", "")
		return a.status == 503 && strings.Contains(fmt.Sprint(a.at("detail")), "stopping")
	})
	n.hit(1).is(200)
	n.do("GET", "/livez", "").is(200)
	admitted := int64(1)
	n.endDrain()
	testkit.Eventually(t, "nobody answers any more", func() bool {
		a, err := n.try("POST", "/v1/hits", hitOf("acme", "requests", ""))
		if err == nil {
			a.is(200)
			admitted++
		}
		return err != nil
	})
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if total := query[int64](t, n.databaseURL, "SELECT total FROM counters"); total != admitted {
		t.Errorf("%d were admitted, %d charged", admitted, total)
	}
}

// A connection that is used by nobody must not hold up the end.
func TestIdleConnectionsDoNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	conn, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	n.do("GET", "/livez", "").is(200)
	began := time.Now()
	if err := n.stop(); err != nil || strings.Contains(n.log.String(), "did not end in time") {
		t.Fatalf("%v\n%s", err, n.log)
	}
	testkit.AtMost(t, "the end", time.Since(began), 8*time.Second)
}
