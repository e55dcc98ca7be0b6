package fastpath

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// faultyRequests are requests whose end two readers may see in two places. Each would be a request
// that net/http serves, or one that it must not go on after.
func faultyRequests() map[string]string {
	first, host := "POST /v1/hits HTTP/1.1", "Host: quota"
	chunked, length := "Transfer-Encoding: chunked", "Content-Length: 6"
	chunks := "0\r\n\r\n"
	lines := func(end string, all ...string) string { return strings.Join(all, end) + end + end + chunks }
	return map[string]string{
		"a length and chunks":            lines("\r\n", first, host, length, chunked),
		"chunks and a length":            lines("\r\n", first, host, chunked, length),
		"in other letters":               lines("\r\n", first, host, "cOnTeNt-lEnGtH:6", "TRANSFER-ENCODING:\tCHUNKED "),
		"chunks and a length of nothing": lines("\r\n", first, host, "Content-Length: 0", chunked),
		"chunks and two lengths":         lines("\r\n", first, host, length, length, chunked),
		"chunks of HTTP/1.0":             lines("\r\n", "POST /v1/hits HTTP/1.0", host, chunked),
		"chunks of HTTP/1.0, kept alive": lines("\r\n", "POST /v1/hits HTTP/1.0", host, "Connection: keep-alive", length, chunked),
		"a coding of HTTP/1.0":           lines("\r\n", "POST /v1/hits HTTP/1.0", host, "Transfer-Encoding: identity"),
		"a folded length":                lines("\r\n", first, host, "Content-Length:", " 6"),
		"a folded coding":                lines("\r\n", first, host, "Transfer-Encoding:", "\tchunked"),
		"a folded field":                 lines("\r\n", first, host, "X-A: 1", " Transfer-Encoding: chunked", length),
		"LF alone":                       lines("\n", first, host, chunked),
		"LF alone in one place":          lines("\r\n", first, host, "X-A: 1\nContent-Length: 5"),
		"LF alone hides chunks":          lines("\r\n", first, host, "X-A: 1\n"+chunked),
		"a head that ends with LF alone": first + "\r\n" + host + "\r\n" + chunked + "\r\n\n" + chunks,
		"two lengths":                    lines("\r\n", first, host, length, "Content-Length: 5"),
		"lengths in a list":              lines("\r\n", first, host, "Content-Length: 6, 5"),
		"a length with a sign":           lines("\r\n", first, host, "Content-Length: +5"),
		"a length in hexadecimal":        lines("\r\n", first, host, "Content-Length: 0x5"),
		"space before a colon":           lines("\r\n", first, host, "Transfer-Encoding : chunked", length),
	}
}

// faultyCodings are refused with 501: net/http knows no other coding than one of chunks.
func faultyCodings() map[string]string {
	all := map[string]string{}
	for _, coding := range []string{
		"chunked, identity", "identity", "identity, chunked", "gzip, chunked", "xchunked", "", `"chunked"`,
		"chunked, chunked", "chunked\r\nTransfer-Encoding: chunked",
	} {
		all[coding] = "POST /v1/hits HTTP/1.1\r\nHost: quota\r\nTransfer-Encoding: " + coding + "\r\n\r\n0\r\n\r\n"
	}
	return all
}

// A request whose end is not plain is refused, and nothing that follows on its connection is served:
// as the first request, after others, after ones that the fast path served, in one segment with them,
// and byte by byte.
func TestFaultyFraming(t *testing.T) {
	smuggled := "GET /smuggled HTTP/1.1\r\nHost: quota\r\n\r\n"
	chunked := "POST /v1/hits HTTP/1.1\r\nHost: quota\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\nabc\r\n0\r\nX-T: 1\r\n\r\n"
	get := "GET /v1/other HTTP/1.1\r\nHost: quota\r\n\r\n"
	befores := map[string]string{
		"first": "", "after one": post("a"), "after one that was served fast": post("a") + post("b") + post("c"), "after chunks": chunked + chunked,
		"after a get": get, "after all": post("a") + chunked + post("b") + get + post("c") + post("d"), "after an empty line": post("a") + "\r\n",
	}
	p := newPair(t)
	expect := func(all map[string]string, status int) {
		for what, request := range all {
			for where, before := range befores {
				served := strings.Count(before, "HTTP/1.1")
				text := before + request + smuggled
				for _, cut := range []func(string) []segment{
					func(s string) []segment { return []segment{{text: s}} },
					func(s string) []segment { return []segment{{text: before}, {text: s[len(before):]}} },
					func(s string) []segment { return []segment{{text: before}, {text: s[len(before):], early: true}} },
					func(s string) (all []segment) {
						for i := range len(s) {
							all = append(all, segment{text: s[i : i+1]})
						}
						return all
					},
				} {
					got, calls := p.fast.run(t, cut(text))
					last := got[max(strings.LastIndex(got, "HTTP/1.1 "), 0):]
					if !strings.HasPrefix(last, fmt.Sprintf("HTTP/1.1 %d ", status)) || !strings.Contains(last, "Connection: close") || len(calls) != served {
						t.Errorf("%s, %s: %d served (%s), then %q", what, where, len(calls), calls, last)
					}
				}
			}
		}
	}
	expect(faultyRequests(), http.StatusBadRequest)
	expect(faultyCodings(), http.StatusNotImplemented)
}

// What is plain is served, however long it is, and what comes after it too.
func TestPlainFraming(t *testing.T) {
	first, host := "POST /v1/hits HTTP/1.1", "Host: quota"
	text := strings.Repeat("z", 9000)
	requests := []string{
		raw("4;a=\"b\"\r\nabcd\r\nA\r\n0123456789\r\n0000\r\n\r\n", first, host, "Transfer-Encoding: CHUNKED"),
		raw("5\r\nhello\r\n0\r\nX-T: Content-Length: 5\r\nContent-Length: 7\r\n\r\n", first, host, "Transfer-Encoding: chunked"),
		raw(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(text), text), first, host, "Transfer-Encoding: chunked"),
		raw(text, first, host, "Content-Length: 9000"),
		raw("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", first, host, "Content-Length: 50"),
		raw("a\n b\n\n", first, host, "Content-Length: 6", "Content-Length: 6"),
		raw("", "GET /v1/other HTTP/1.1", host), raw("", first, host, "X-A: "+strings.Repeat("v", 5000)), post("a"), post("b"), post("c"),
	}
	p := newPair(t)
	all := strings.Join(requests, "") + strings.Join(requests, "")
	for _, size := range []int{len(all), 1, 7, 4095, 4096, 5000} {
		var cut []segment
		for rest := all; rest != ""; {
			n := min(size, len(rest))
			cut, rest = append(cut, segment{text: rest[:n]}), rest[n:]
		}
		if served := p.same(t, cut); len(served) != 2*len(requests) {
			t.Errorf("of segments of %d bytes %d requests were served, not %d", size, len(served), 2*len(requests))
		}
	}
}

// A request that is being answered goes on when a faulty one comes after it.
func TestFaultyRequestEndsNoOther(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	server := New(testServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
			w.WriteHeader(http.StatusTeapot)
		case <-time.After(200 * time.Millisecond): // net/http looks at once
		}
	})), testOptions())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(Listener(listener)) }()
	t.Cleanup(func() {
		_ = server.Close()
		serverEnded(t, ended)
	})
	nc, err := net.Dial("tcp", listener.Addr().String())
	check(t, err)
	defer func() { _ = nc.Close() }()
	check(t, nc.SetDeadline(time.Now().Add(patient)))
	_, err = io.WriteString(nc, "GET /v1/other HTTP/1.1\r\nHost: quota\r\n\r\n"+faultyRequests()["a length and chunks"])
	check(t, err)
	got, _ := io.ReadAll(nc)
	if !strings.HasPrefix(string(got), "HTTP/1.1 200 OK\r\n") || !strings.Contains(string(got), "HTTP/1.1 400 Bad Request\r\n") {
		t.Errorf("%q", got)
	}
}

// A trailer that ends in two places ends the connection, too.
func TestFaultyTrailer(t *testing.T) {
	p := newPair(t)
	request := "POST /v1/hits HTTP/1.1\r\nHost: quota\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-T: 1\n\nGET /smuggled HTTP/1.1\r\nHost: quota\r\n\r\n"
	_, calls := p.fast.run(t, []segment{{text: request + post("a")}})
	if len(calls) != 1 || p.fast.echo.others {
		t.Errorf("%d were served", len(calls))
	}
}

// The refusal is on the wire before the connection ends.
func TestFaultyFramingOverTCP(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	server := New(testServer(&echo{}), testOptions())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(Listener(listener)) }()
	t.Cleanup(func() {
		_ = server.Close()
		serverEnded(t, ended)
	})
	nc, err := net.Dial("tcp", listener.Addr().String())
	check(t, err)
	defer func() { _ = nc.Close() }()
	check(t, nc.SetDeadline(time.Now().Add(patient)))
	_, err = io.WriteString(nc, post("a")+faultyRequests()["a length and chunks"])
	check(t, err)
	got, _ := io.ReadAll(nc)
	if !strings.Contains(string(got), "HTTP/1.1 400 Bad Request\r\n") {
		t.Errorf("%q", got)
	}
}

// Beside net/http alone, following the framing only refuses: what it lets through is answered the
// same, and what it does not is one of the requests that it is for.
func TestFramingOnlyRefuses(t *testing.T) {
	p := newPairWith(t, func(l net.Listener) net.Listener { return l })
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		known := false // the one difference of the fast path: an empty line before a request
		for range rapid.IntRange(1, 5).Draw(t, "requests") {
			odd := oddities(t, "odd")
			known = known || slices.Contains(odd, "crlf")
			b.WriteString(drawRequest(t, odd))
		}
		segments := drawCuts(t, b.String())
		want, _ := p.plain.run(t, segments)
		got, _ := p.fast.run(t, segments)
		if got == want {
			return
		}
		alone := strings.Count(b.String(), "\n") > strings.Count(b.String(), "\r\n")
		if !badLine(got, want) || !alone && !strings.Contains(b.String(), "\r\n ") && !strings.Contains(b.String(), "Transfer-Encoding") && !known {
			t.Fatalf("sent %+q:\ngot  %q\nwant %q", segments, got, want)
		}
	})
}
