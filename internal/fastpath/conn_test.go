package fastpath

import (
	"fmt"
	"strings"
	"testing"
)

// post is a request with these further lines in its head.
func post(body string, lines ...string) string {
	return request("POST "+hitsPath+" HTTP/1.1", body, append([]string{"Host: quota"}, lines...)...)
}

func request(first, body string, lines ...string) string {
	lines = append([]string{first}, lines...)
	return strings.Join(append(lines, fmt.Sprintf("Content-Length: %d", len(body))), "\r\n") + "\r\n\r\n" + body
}

// raw is a request whose lines are all given.
func raw(body string, lines ...string) string {
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body
}

// ask is a GET with these further lines in its head.
func ask(lines ...string) string {
	return raw("", append([]string{"GET " + askPath + " HTTP/1.1", "Host: quota"}, lines...)...)
}

// peek is a HEAD with these further lines in its head.
func peek(lines ...string) string {
	return raw("", append([]string{"HEAD " + askPath + " HTTP/1.1", "Host: quota"}, lines...)...)
}

func peekWith(body string) string { return request("HEAD "+askPath+" HTTP/1.1", body, "Host: quota") }

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: quota\r\n\r\n" }

// segments are texts that come one after the other; "<" before a text: early.
func segments(texts ...string) []segment {
	var all []segment
	for _, text := range texts {
		late, early := strings.CutPrefix(text, "<")
		all = append(all, segment{text: late, early: early})
	}
	return all
}

type story struct {
	name   string
	sent   []segment
	served string // s by net/http, f fast
}

// TestSame has both servers answer the same bytes, cut in many ways, and knows which of the
// requests the fast path is there for.
func TestSame(t *testing.T) {
	for _, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			p := newPair(t)
			if served := p.same(t, s.sent); served != s.served {
				t.Errorf("served %q, want %q", served, s.served)
			}
			p.same(t, inOne(s.sent))
			length := len(inOne(s.sent)[0].text)
			step := length/8 + 1
			for at := 1; at < length; at += step {
				p.same(t, cutAt(s.sent, at, false))
				p.same(t, cutAt(s.sent, at, true))
			}
		})
	}
}

func stories() []story {
	return append(append(append(repeated(), heads()...), bodies()...), hostile()...)
}

var long = strings.Repeat("x", 3000)

// repeated are the requests that the fast path is there for, and what comes between them.
func repeated() []story {
	key, trace := "Idempotency-Key: ", "Traceparent: "
	return []story{
		{"one", segments(post("a")), "s"},
		{"again", segments(post("a"), post("b"), post("longer than that"), post(""), post("c")), "sffff"},
		{"first without a body", segments(post(""), post("b"), post("")), "sff"},
		{"pipelined", segments(post("a"), post("b")+post("cc")+post("ddd"), post("e")), "sffff"},
		{"pipelined with others", segments(post("a"), post("b")+get("/x")+post("c")+post("d"), post("e")), "sfsssf"},
		{"others between", segments(post("a"), get("/v1/hits"), post("b"), get("/"), post("c")), "ssfsf"},
		{"other path", segments(request("POST /v1/other HTTP/1.1", "a", "Host: q"), request("POST /v1/other HTTP/1.1", "a", "Host: q")), "ss"},
		{"other method", segments(request("PUT /v1/hits HTTP/1.1", "a", "Host: q"), request("PUT /v1/hits HTTP/1.1", "a", "Host: q")), "ss"},
		{"varying", segments(post("a", key+"1", trace+"x"), post("b", key+"22", trace+"x"), post("c", key+"22", trace+"y"), post("c", key+"1", trace+"x")), "sfff"},
		{"varying behind the length", segments(raw("a", "POST /v1/hits HTTP/1.1", "Content-Length: 1", "Host: q", key+"1"),
			raw("bcd", "POST /v1/hits HTTP/1.1", "Content-Length: 3", "Host: q", key+"2")), "sf"},
		{"no longer varying", segments(post("a", key+"1"), post("b"), post("c"), post("d", key+"2"), post("e", key+"3")), "ssfsf"},
		{"empty value", segments(post("a", key), post("b", key), post("c", key+"1"), post("d", key), post("e", key)), "sffff"},
		{"value with a space", segments(post("a", key+"1"), post("b", key+"1 2"), post("c", key+"1 2"), post("d", key+"1 3")), "ssfs"},
		{"value between spaces", segments(post("a", key+"1"), post("b", key+" 1"), post("c", key+" 1\t"), post("d", key+" 1\t")), "sssf"},
		{"value without a space", segments(post("a", "Idempotency-Key:1"), post("b", "Idempotency-Key:1"), post("b", "Idempotency-Key:2")), "sfs"},
		{"value of obs-text", segments(post("a", key+"1"), post("b", key+"\xe9"), post("c", key+"\xe9"), post("d", key+"\xe8")), "ssfs"},
		{"other value", segments(post("a", "X-A: 1"), post("b", "X-A: 2"), post("c", "X-A: 2")), "ssf"},
		{"name's case", segments(post("a", "idempotency-KEY: 1"), post("b", "idempotency-KEY: 2"), post("c", "Idempotency-Key: 2")), "sfs"},
		{"length's name in lower case", segments(raw("a", "POST /v1/hits HTTP/1.1", "host: q", "content-length: 1"),
			raw("bb", "POST /v1/hits HTTP/1.1", "host: q", "content-length: 2")), "sf"},
		{"without a body", segments(get(askPath), get(askPath), get(askPath)+get(askPath), get("/x"), get(askPath)), "sfffsf"},
		{"without a body, varying", segments(ask(key+"1"), ask(key+"22"), ask(key+"1 2"), ask(key+"3", "X-A: 1"), ask(key+"4", "X-A: 1")), "sfssf"},
		{"without a body, then with one", segments(get(askPath), request("GET "+askPath+" HTTP/1.1", "body", "Host: quota"),
			request("GET "+askPath+" HTTP/1.1", "b", "Host: quota"), get(askPath), get(askPath)), "ssfsf"},
		{"HEAD", segments(peek(), peek(), peek()+peek(key+"1"), peek(key+"2"), get(askPath), peek(key+"2"), peek(key+"3")), "sffsfssf"},
		{"HEAD with a body", segments(peekWith("big=5000"), peekWith("big=9"), peekWith("none"), peekWith("full"), peek(), peek()), "sfffsf"},
		{"without a body, between posts", segments(post("a"), get(askPath), post("b"), post("c")+get(askPath), get(askPath)), "sssfsf"},
		{
			"learns no more", segments(post("a", "X-A: 1"), post("a", "X-A: 2"), post("a", "X-A: 3"), post("a", "X-A: 4"),
				post("a", "X-A: 5"), post("a", "X-A: 6"), post("a", "X-A: 7"), post("a", "X-A: 8"), post("a", "X-A: 9"), post("a", "X-A: 9"), post("a", "X-A: 8")),
			"ssssssssssf",
		},
		{"a line more behind a body", segments(post("a"), get("/"), post("b")+post("c"), get("/"), "\r\n"+post("c")), "ssffs"},
	}
}

// bodies are of many sizes, and steer what is answered.
func bodies() []story {
	head := raw("", "POST /v1/hits HTTP/1.1", "Host: quota", "Content-Length: 4")
	full := strings.Repeat("y", 4096-len(post(long))+len(long)) // with its head, 4096 bytes
	return []story{
		{"statuses", segments(post("full"), post("full"), post("none"), post("big=5000"), post("big=2048"), post("big=100000"), post("full")), "sffffff"},
		{"closed by the answer", segments(post("a"), post("close"), post("b")), "sf"},
		{"closed by the answer, pipelined", segments(post("a"), post("close")+post("b")), "sf"},
		{"closed by the first answer", segments(post("close"), post("b")), "s"},
		{"fills the buffer", segments(post("a"), post(full), post("b"), post(full+"z"), post("c"), post(full[1:]), post("d")), "sffsfff"},
		{"beyond the buffer", segments(post("a"), post(strings.Repeat("z", 9000)), post("b")), "ssf"},
		{"body behind the head", segments(post("a"), head, "<body", post("c"), head+"b", "<o", "<dy", post("d")), "sffff"},
		{"no body", segments(post("a"), head), "ss"},
		{"half a body", segments(post("a"), head+"bo"), "ss"},
		{"half a head", segments(post("a"), head[:30], "<"+head[30:]+"body", post("d")), "ssf"},
		{"end of a head", segments(post("a"), head[:len(head)-1], "<\nbody", post("d")), "ssf"},
		{"half a head behind a request", segments(post("a"), post("b")+head[:30], "<"+head[30:]+"body", post("d")), "sfsf"},
		{"a body over two", segments(post("a"), post("b")+head+"bo", "<dy"+post("c"), post("d")), "sffff"},
	}
}
