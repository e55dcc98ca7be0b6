package main

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// A request with a Content-Length beside a Transfer-Encoding is refused on every listener, with and
// without TLS, before its handler, and its connection ends: what comes after it is not served.
func TestRequestsThatEndInTwoPlaces(t *testing.T) {
	t.Parallel()
	cert, key := selfSigned(t, t.TempDir())
	plain := start(t, "", "--metrics-listen=127.0.0.1:0")
	secure := start(t, plain.databaseURL, "--tls-cert="+cert, "--tls-key="+key)
	dials := map[string]func() (net.Conn, error){
		"plain": func() (net.Conn, error) { return net.Dial("tcp", strings.TrimPrefix(plain.url, "http://")) },
		"metrics": func() (net.Conn, error) {
			return net.Dial("tcp", strings.TrimPrefix(plain.node.front.urls[1], "http://"))
		},
		"TLS": func() (net.Conn, error) {
			return tls.Dial("tcp", strings.TrimPrefix(secure.url, "https://"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
		},
		"TLS without ALPN": func() (net.Conn, error) {
			return tls.Dial("tcp", strings.TrimPrefix(secure.url, "https://"), &tls.Config{InsecureSkipVerify: true})
		},
	}
	const live, host = "GET /livez HTTP/1.1\r\nHost: quota\r\n\r\n", "Host: quota\r\n"
	for listener, dial := range dials {
		for what, request := range map[string]string{
			"both":   "POST /v1/hits HTTP/1.1\r\n" + host + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"1.0":    "POST /v1/hits HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			"folded": "POST /v1/hits HTTP/1.1\r\n" + host + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
		} {
			for _, before := range []string{"", live, live + live} {
				nc, err := dial()
				if err != nil {
					t.Fatal(err)
				}
				_ = nc.SetDeadline(time.Now().Add(testkit.Patience))
				if _, err := io.WriteString(nc, before+request+live); err != nil {
					t.Fatal(err)
				}
				got, _ := io.ReadAll(nc) // a reset may follow the refusal
				_ = nc.Close()
				answers := strings.Split(string(got), "HTTP/1.1 ")[1:]
				if len(answers) != strings.Count(before, "GET")+1 || !strings.HasPrefix(answers[len(answers)-1], "400 ") {
					t.Errorf("%s, %s after %q: %q", listener, what, before, got)
				}
			}
		}
	}
}
