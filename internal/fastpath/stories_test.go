package fastpath

import (
	"fmt"
	"strings"
)

// heads are other ways to say the same, or nearly.
func heads() []story {
	first, host, length := "POST /v1/hits HTTP/1.1", "Host: quota", "Content-Length: 1"
	twice := func(lines ...string) []segment {
		return segments(raw("a", lines...), raw("b", lines...), post("c"), post("d"))
	}
	return []story{
		{"keep-alive", twice(first, host, "Connection: keep-alive", length), "sfsf"},
		{"close", twice(first, host, "Connection: close", length), "s"},
		{"close later", segments(post("a"), raw("b", first, host, "Connection: close", length), post("c")), "ss"},
		{"upgrade", twice(first, host, "Connection: Upgrade", "Upgrade: h2c", length), "sssf"},
		{"continue", segments(post("a"), raw("", first, host, "Expect: 100-continue", length), "<b", post("c")), "ssf"},
		{"continue, twice", twice(first, host, "Expect: 100-continue", length), "sssf"},
		{"expects what is not known", twice(first, host, "Expect: x", length), ""},
		{"HTTP/1.0", twice("POST /v1/hits HTTP/1.0", host, length), "s"},
		{"HTTP/1.0 kept", twice("POST /v1/hits HTTP/1.0", host, "Connection: keep-alive", length), "sssf"},
		{"HTTP/2.0", segments(post("a"), raw("b", "POST /v1/hits HTTP/2.0", host, length), post("c")), "s"},
		{"absolute", twice("POST http://other:80/v1/hits?q HTTP/1.1", host, length), "sfsf"},
		{"query", twice("POST /v1/hits?a=%20&b HTTP/1.1", host, length), "sfsf"},
		{"escaped", twice("POST /v1/%68its HTTP/1.1", host, length), "sfsf"},
		{"no host", twice(first, length), ""},
		{"no host later", segments(post("a"), raw("b", first, length), post("c")), "s"},
		{"two hosts", twice(first, host, host, length), ""},
		{"empty host", twice(first, "Host: ", length), "sfsf"},
		{"bad host", twice(first, "Host: a b", length), ""},
		{"no length", twice(first, host), "ssss"},
		{"length twice", twice(first, host, length, length), "sssf"},
		{"length in a list", twice(first, host, "Content-Length: 1, 1"), ""},
		{"length with a zero before it", twice(first, host, "Content-Length: 01"), "ssff"},
		{"length with a plus", twice(first, host, "Content-Length: +1"), ""},
		{"negative length", segments(post("a"), raw("b", first, host, "Content-Length: -1"), post("c")), "s"},
		{"no digit of a length", segments(post("a"), raw("b", first, host, "Content-Length: "), post("c")), "s"},
		{"a length of zeros", segments(post("a"), raw("", first, host, "Content-Length: 00"), post("c")), "ssf"},
		{"a long length", segments(post("a"), raw("b", first, host, "Content-Length: 000000000000000000001"), post("c")), "ssf"},
		{"an endless length", segments(post("a"), raw("b", first, host, "Content-Length: 99999999999999999999"), post("c")), "s"},
		{"space before a length", twice(first, host, "Content-Length:  1"), "sssf"},
		{"space behind a length", twice(first, host, "Content-Length: 1 "), "sssf"},
		{"space before a colon", twice(first, host, "X-A : 1", length), ""},
		{"chunks", segments(post("a"), raw("1\r\nb\r\n0\r\n\r\n", first, host, "Transfer-Encoding: chunked"), post("c")), "ssf"},
		{"chunks and a length", segments(raw("1\r\nb\r\n0\r\n\r\n", first, host, "Transfer-Encoding: chunked", length), post("c")), ""},
		{"unknown encoding", twice(first, host, "Transfer-Encoding: x", length), ""},
		{"bare LF", segments(post("a"), strings.ReplaceAll(post("b"), "\r\n", "\n"), strings.ReplaceAll(post("c"), "\r\n", "\n"), post("d")), "s"},
		{"one bare LF", segments(strings.Replace(post("b"), "\r\n", "\n", 1), strings.Replace(post("b"), "\r\n", "\n", 1), post("d")), ""},
		{"bare LF before the end", segments(post("a", "X-A: 1\n\nbody\r\n"), post("b")), ""},
		{"CR in a value", twice(first, host, "X-A: 1\r2", length), ""},
		{"NUL in a value", segments(post("a"), post("b", "X-A: \x00"), post("c")), "s"},
		{"NUL in a varying value", segments(post("a", "Traceparent: x"), post("b", "Traceparent: \x00"), post("c")), "s"},
		{"folded", twice(first, host, "X-A: 1", " 2", length), ""},
		{"tabs", twice(first, host, "X-A:\t1\t", length), "sfsf"},
		{"empty lines before", segments(post("a"), "\r\n"+post("b"), "\r\n\r\n"+post("c"), post("d")), "sssf"},
		{"pragma", twice(first, host, "Pragma: no-cache", length), "sfsf"},
		{"over 2 KiB", twice(first, host, "X-A: "+long[:2100], length), "sssf"},
		{"just 2 KiB", twice(first, host, "X-A: "+long[:2048-len(raw("", first, host, "X-A: ", length))], length), "sfsf"},
		{"over 4 KiB", twice(first, host, "X-A: "+long, "X-B: "+long, length), "sssf"},
		{"all server", segments("OPTIONS * HTTP/1.1\r\nHost: q\r\n\r\n"+post("a"), post("b"), post("c")), "ssf"},
		{"no HTTP", segments(post("a"), "nonsense\r\n\r\n", post("b")), "s"},
		{"less than net/http looks for", segments(post("a"), "PO"), "s"},
	}
}

// hostile are streams that mean something else when they are read from another place on.
func hostile() []story {
	first, host := "POST /v1/hits HTTP/1.1", "Host: quota"
	key := "Idempotency-Key: "
	lengths := func(a, b string) string {
		return raw("body", first, host, "Content-Length: "+a, "Content-Length: "+b)
	}
	// What fills net/http's buffer of 4096 bytes before the text does.
	behindBuffer := func(text string) string {
		begin := raw("", first, host, "X-Other: 1", "Content-Length: 5000")
		before := post("a") + begin
		text = strings.Repeat("z", 4096-len(before)) + text
		return before + text + strings.Repeat("z", 5000-len(text))
	}
	return []story{
		{"a request in a body", segments(post("a"), post(post("b")), post("c")), "sff"},
		{"a request in a body that is long", segments(post("a"), post(strings.Repeat(post("b"), 100)), post("c")), "ssf"},
		{"a request in a body that comes later", segments(post("a"), raw("", first, host, "Te: trailers", fmt.Sprint("Content-Length: ", len(post("b")))),
			"<"+post("b"), post("c")), "ssf"},
		{"a request in a body behind net/http's buffer", segments(behindBuffer(post("evil")), post("c")), "ssf"},
		{"a request behind its beginning", segments(post("a"), post("linger"), "<X"+post("b"), post("c")), "sfsf"},
		{"a request behind its beginning, early", segments(post("linger"), "<X"+post("b"), post("c")), "ssf"},
		{"early, and repeated", segments(post("linger"), "<"+post("b"), post("c"), post("d")), "ssff"},
		{"early, behind another", segments(post("a")+post("linger", "X-A: 1"), "<"+post("b"), post("c"), post("d")), "sssff"},
		{"two lengths", segments(lengths("4", "4"), lengths("4", "5")+"x"), "s"},
		{"two other lengths", segments(lengths("4", "4"), lengths("5", "4")+"x"), "s"},
		{"two lengths, one with spaces", segments(lengths("4", " 4"), lengths("5", " 4")+"x"), "s"},
		{"two keys", segments(post("a", key+"1", key+"2"), post("a", key+"1", key+"2"), post("b", key+"3", key+"2"), post("c", key+"3", key+"4")), "ssss"},
		{"two keys, one with spaces", segments(post("a", key+"1", key+"2 3"), post("b", key+"4", key+"2 3")), "ss"},
		{"two keys, one in lower case", segments(post("a", key+"1", "idempotency-key: 2"), post("b", key+"4", "idempotency-key: 2")), "ss"},
		{"the head of another", segments(post("a")+get("/x"), get("/x"), post("b"), post("c")), "sssff"},
		{"a value that ends the head", segments(post("a", key+"1"), post("b", key+"\r\nX: 1")), "ss"},
	}
}
