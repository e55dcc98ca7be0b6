package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, pemOf("CERTIFICATE", der)}
}

// sign makes a certificate for 127.0.0.1, and its key.
func (a *authority) sign(t testing.TB, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("CERTIFICATE", der), pemOf("PRIVATE KEY", privateDER)
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// moment is a time in which the database takes no login.
type moment struct{ began, ended time.Time }

// failedRead is a read that was not answered by 200.
type failedRead struct {
	moment
	status int
}

// keepsAsking sends hits, with an id and without, and reads, until the returned function is called. It then
// fails the test where an answer was not as it should be. Reads that were under way in one of the moments may be
// 503; hits may not.
func (n *testNode) keepsAsking() (stop func(without ...moment)) {
	n.t.Helper()
	n.hit(1).is(200) // the node has read the customer and its plan
	ids, over := 0, make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(pace()):
				ids++
				if a, err := n.try("POST", "/v1/hits", hitOf("acme", "requests", fmt.Sprintf(`,"id":"%p-%d"`, over, ids))); err != nil || a.status != 200 ||
					a.at("degraded") != nil {
					n.t.Errorf("a hit with an id: %+v, %v", a, err)
				}
			}
		}
	})
	var mu sync.Mutex
	var failed []failedRead
	for range 3 {
		running.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(pace()):
				}
				r := failedRead{moment: moment{began: time.Now()}}
				if r.status = n.status("GET", "/v1/customers/acme/quota", ""); r.status != 200 {
					r.ended = time.Now()
					mu.Lock()
					failed = append(failed, r)
					mu.Unlock()
				}
			}
		})
	}
	hits, stopHits := n.flood(3, "POST", "/v1/hits", hitOf("acme", "requests", ""))
	end := sync.OnceFunc(func() {
		stopHits()
		close(over)
		running.Wait()
	})
	n.t.Cleanup(end) // of a test that failed before
	return func(without ...moment) {
		n.t.Helper()
		end()
		hits.Range(func(status, count any) bool {
			if status != 200 {
				n.t.Errorf("%v hits of status %v", count, status)
			}
			return true
		})
		for _, r := range failed {
			if r.status != 503 || !slices.ContainsFunc(without, r.overlaps) {
				n.t.Errorf("a read of status %d, from %s to %s; no login was possible in %v", r.status, r.began, r.ended, without)
				break
			}
		}
		if degraded := n.outcomes("degraded"); degraded > 0 {
			n.t.Errorf("%d hits were let in without the database", degraded)
		}
	}
}

func (m moment) overlaps(other moment) bool {
	return !m.ended.Before(other.began) && !other.ended.Before(m.began)
}

// renewed ends all sessions of the database between two hits, so that each is made again.
func (n *testNode) renewed(adminURL string) {
	n.t.Helper()
	n.skip(1200 * time.Millisecond) // a node checks a session that was idle for a second before it uses the session
	const patiently = 300_000       // ms for a session to end
	execute(n.t, adminURL, `SELECT count(pg_terminate_backend(pid, $1)) FROM pg_stat_activity WHERE datname = 'quotad'`, patiently)
	n.hit(1).is(200).has("degraded", nil)
	n.do("POST", "/v1/hits", hitOf("acme", "requests", fmt.Sprintf(`,"id":"after %d"`, time.Now().UnixNano()))).is(200).has("degraded", nil)
}

// short has pools make new connections all the time.
const short = "&pool_max_conn_lifetime=50ms&pool_health_check_period=20ms"

// withPasswords is a server that lets in the database's roles by their passwords alone.
func withPasswords(t testing.TB) *pgtest.Instance {
	t.Helper()
	server := pgtest.Server(t)
	write(t, filepath.Join(server.DataDir(), "pg_hba.conf"), "local postgres all trust\nlocal all all scram-sha-256\n")
	execSQL(t, server.AdminURL(), `ALTER ROLE quotad PASSWORD 'first'; CREATE ROLE other LOGIN PASSWORD 'first' IN ROLE quotad; SELECT pg_reload_conf()`)
	return server
}

// A new role and password in the URL's file are used for each new connection.
func TestURLFileIsReadAgain(t *testing.T) {
	t.Parallel()
	server := withPasswords(t)
	file := filepath.Join(t.TempDir(), "url")
	urlOf := func(role, password string) string {
		return strings.Replace(pgtest.Patiently(server.URL()), "quotad@", role+":"+password+"@", 1) + short + "\n"
	}
	write(t, file, urlOf("quotad", "first"))
	p := program{lookupEnv: func(name string) (string, bool) {
		if name != "QUOTAD_DATABASE_URL_FILE" {
			return "", false
		}
		return file, true
	}}
	command, _, err := p.parse([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	n := start(t, command.(*settings).DatabaseURL)
	n.setUp(fixed("l", 100_000_000))
	connected := func(role string) {
		t.Helper()
		const made = `SELECT count(*) FROM pg_stat_activity WHERE datname = 'quotad' AND usename = $1 AND backend_start > $2`
		since := query[time.Time](t, server.AdminURL(), "SELECT clock_timestamp()")
		testkit.Eventually(t, "connections are made as "+role, func() bool { return query[int64](t, server.AdminURL(), made, role, since) > 1 })
	}
	stop := n.keepsAsking()
	for i := range 5 {
		role, password := []string{"other", "quotad"}[i%2], fmt.Sprintf("next%d", i)
		execute(t, server.AdminURL(), "ALTER ROLE "+role+" PASSWORD '"+password+"'")
		write(t, file+".new", urlOf(role, password))
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
		connected(role)
	}
	write(t, file, "") // as while it is being written
	connected("other")
	write(t, file, urlOf("other", "next4"))
	stop()
	n.renewed(server.AdminURL())
}

// So is a new password in a file of passwords. The role has neither password from the change on until the
// file is written. A read that needs a connection then may fail, and no hit does.
func TestPassfileIsReadAgain(t *testing.T) {
	t.Parallel()
	server := withPasswords(t)
	file := filepath.Join(t.TempDir(), "passwords")
	write(t, file, "*:*:*:quotad:first\n")
	n := start(t, pgtest.Patiently(server.URL())+"&passfile="+url.QueryEscape(file)+short)
	n.setUp(fixed("l", 100_000_000))
	stop := n.keepsAsking()
	var without []moment
	for i := range 5 {
		password := fmt.Sprintf("next%d", i)
		m := moment{began: time.Now()}
		execute(t, server.AdminURL(), "ALTER ROLE quotad PASSWORD '"+password+"'")
		write(t, file, "*:*:*:quotad:"+password+"\n")
		m.ended = time.Now()
		without = append(without, m)
		const made = `SELECT count(*) FROM pg_stat_activity WHERE datname = 'quotad' AND backend_start > $1`
		testkit.Eventually(t, "connections are made by the new password", func() bool { return query[int64](t, server.AdminURL(), made, m.ended) > 1 })
	}
	stop(without...)
	n.renewed(server.AdminURL())
}

// Certificates of the way to the database are replaced one file after the other, roots first.
func TestDatabaseCertificatesAreReadAgain(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	dir, there := t.TempDir(), server.DataDir()
	old, next := newAuthority(t, "old"), newAuthority(t, "next")
	root, cert, key := filepath.Join(dir, "root"), filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	thereRoot, thereCert, thereKey := filepath.Join(there, "root"), filepath.Join(there, "cert"), filepath.Join(there, "key")
	write(t, root, old.pem)
	write(t, thereRoot, old.pem)
	oldCert, oldKey := old.sign(t, "quotad")
	write(t, cert, oldCert)
	write(t, key, oldKey)
	serverCert, serverKey := old.sign(t, "server")
	write(t, thereCert, serverCert)
	write(t, thereKey, serverKey)
	pooler := server.Pooler(map[string]string{
		"client_tls_sslmode": "verify-full", "client_tls_ca_file": thereRoot, "client_tls_cert_file": thereCert, "client_tls_key_file": thereKey,
	})
	by := func(cert, key string) string {
		return pgtest.Patiently(fmt.Sprintf("postgres://quotad@%s/quotad?sslmode=verify-full&sslrootcert=%s&sslcert=%s&sslkey=%s", pooler.Address(), root, cert, key))
	}
	n := start(t, by(cert, key)+short)
	n.setUp(fixed("l", 100_000_000))
	stop := n.keepsAsking()
	step := func() {
		pooler.Reload()
		made := n.node.reads.Stat().NewConnsCount()
		testkit.Eventually(t, "connections are made beside what was written", func() bool { return n.node.reads.Stat().NewConnsCount() > made+1 })
	}
	step()
	write(t, root, old.pem+next.pem)
	write(t, thereRoot, old.pem+next.pem)
	step()
	nextCert, nextKey := next.sign(t, "quotad")
	write(t, cert, nextCert) // for a while it does not fit its key
	step()
	write(t, key, nextKey)
	step()
	serverCert, serverKey = next.sign(t, "server")
	write(t, thereKey, serverKey)
	write(t, thereCert, serverCert)
	step()
	write(t, root, next.pem)
	write(t, thereRoot, next.pem)
	step()
	stop()
	n.renewed(server.AdminURL())
	// The certificate of before lets nobody in any more.
	write(t, cert+".old", oldCert)
	write(t, key+".old", oldKey)
	if conn, err := postgres.Connect(testkit.Context(t), by(cert+".old", key+".old"), nil); err == nil {
		postgres.CloseConn(conn)
		t.Error("the old certificate still works")
	}
}

// The listener's own certificate is replaced while clients connect.
func TestCertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	one, next := newAuthority(t, "one"), newAuthority(t, "next")
	put := func(a *authority) {
		certPEM, keyPEM := a.sign(t, "quotad")
		write(t, key, keyPEM)
		time.Sleep(50 * time.Millisecond) // for a while the key does not fit
		write(t, cert, certPEM)
	}
	put(one)
	roots := x509.NewCertPool()
	roots.AddCert(one.cert)
	roots.AddCert(next.cert)
	n := start(t, "", "--tls-cert="+cert, "--tls-key="+key)
	n.client = newClient()
	transport := n.client.Transport.(*http.Transport)
	transport.TLSClientConfig, transport.DisableKeepAlives = &tls.Config{RootCAs: roots}, true
	n.setUp(fixed("l", 100_000_000))
	stop := n.keepsAsking()
	issuer := func() string {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(n.url, "https://"), &tls.Config{RootCAs: roots})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Issuer.CommonName
	}
	if is := issuer(); is != "one" {
		t.Errorf("the first certificate is of %q", is)
	}
	time.Sleep(1100 * time.Millisecond) // let the key be seen alone
	put(next)
	testkit.Eventually(t, "the new certificate is served", func() bool { return issuer() == "next" })
	write(t, cert, "no certificate")
	time.Sleep(1100 * time.Millisecond)
	if is := issuer(); is != "next" {
		t.Errorf("after a file that is none, the certificate is of %q", is)
	}
	stop()
	if !strings.Contains(n.log.String(), "the new TLS certificate cannot be used") {
		t.Error("the log does not say that a file is no certificate")
	}
}
