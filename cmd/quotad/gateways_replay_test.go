package main

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// TestGatewaysReplayed sends what Traefik and Envoy say that they send. Their programs are not to be had
// here. A client's own part of it gains nothing.
func TestGatewaysReplayed(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.do("PUT", "/v1/meters/cheap", `{"unit":"x"}`).is(201)
	n.setUp(fixed("hourly", 4))
	_, key := n.newKey("backend")
	traefik := strings.Join([]string{
		"GET /v1/authorize?meter=requests HTTP/1.1", "Host: 127.0.0.1:8080", "User-Agent: Go-http-client/1.1", "X-Forwarded-For: 192.0.2.9",
		"X-Forwarded-Host: shop.example.com", "X-Forwarded-Method: POST", "X-Forwarded-Port: 443", "X-Forwarded-Proto: https", "X-Forwarded-Server: edge",
		"X-Forwarded-Uri: /orders?dry_run=true&meter=cheap", "X-Quotad-Customer: acme", "X-Quotad-Key: " + key, "Accept-Encoding: gzip",
	}, "\r\n") + "\r\n\r\n"
	envoy := strings.Join([]string{
		"POST /v1/authorize/orders/17?dry_run=true&meter=cheap&cost=0&deny_status=200 HTTP/1.1", "host: 127.0.0.1:8080", "content-length: 0",
		"x-envoy-internal: true",
		"x-forwarded-for: 192.0.2.9", "x-quotad-customer: acme", "x-quotad-key: " + key, "x-quotad-meter: requests",
	}, "\r\n") + "\r\n\r\n"
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(n.url, "http://"), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
	from := bufio.NewReader(conn)
	for i, row := range []struct {
		request string
		status  int
	}{{traefik, 200}, {envoy, 200}, {traefik, 200}, {envoy, 200}, {traefik, 429}, {envoy, 429}} {
		if _, err := conn.Write([]byte(row.request)); err != nil {
			t.Fatal(err)
		}
		got, err := http.ReadResponse(from, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.StatusCode != row.status || got.Header.Get("RateLimit") == "" || (row.status == 429) != (got.Header.Get("Retry-After") != "") {
			t.Errorf("%d: %d %v", i, got.StatusCode, got.Header)
		}
		if _, err := from.Discard(int(got.ContentLength)); err != nil {
			t.Fatal(err)
		}
	}
	if got := usedBy(n); got != "4" {
		t.Errorf("%s units were charged", got)
	}
}
