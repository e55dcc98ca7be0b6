package fastpath

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// FuzzConn sends any bytes, cut anywhere: each byte of cuts is the length of a segment, and
// an odd one makes the next early.
func FuzzConn(f *testing.F) {
	for _, s := range stories() {
		text := inOne(s.sent)[0].text
		f.Add([]byte(text), []byte{})
		f.Add([]byte(text), []byte{8, 3, 9, 10})
	}
	p := newPair(f)
	p.known = true
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		// net/http takes half a second to end a connection on which a head is too long.
		stream = stream[:min(len(stream), 12<<10)]
		p.same(t, cut(string(stream), cuts))
	})
}

func cut(text string, cuts []byte) []segment {
	var all []segment
	early := false
	for _, c := range cuts {
		n := min(int(c)*4+1, len(text))
		all = append(all, segment{text: text[:n], early: early})
		text, early = text[n:], c%2 == 1
	}
	return append(all, segment{text: text, early: early})
}

// TestStreams sends requests that repeat, with now and then what may make a difference.
func TestStreams(t *testing.T) {
	p := newPair(t)
	p.known = true
	rapid.Check(t, func(t *rapid.T) { p.playStream(t) })
}

// FuzzStreams does it for longer.
func FuzzStreams(f *testing.F) {
	p := newPair(f)
	p.known = true
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { p.playStream(t) }))
}

func (p *pair) playStream(t *rapid.T) {
	usual := oddities(t, "usual")
	var b strings.Builder
	for i := range rapid.IntRange(2, 6).Draw(t, "requests") {
		odd := usual
		if rapid.IntRange(0, 4).Draw(t, "other") == 0 {
			odd = oddities(t, fmt.Sprint("odd", i))
		}
		b.WriteString(drawRequest(t, odd))
	}
	p.same(t, drawCuts(t, b.String()))
}

// drawCuts cuts mostly where heads begin or end.
func drawCuts(t *rapid.T, text string) []segment {
	var all []segment
	early := false
	for len(text) > 0 {
		n := len(text)
		switch rapid.IntRange(0, 4).Draw(t, "cut") {
		case 0:
			n = rapid.IntRange(1, len(text)).Draw(t, "length")
		case 1:
			n = min(rapid.IntRange(4090, 4100).Draw(t, "length"), n)
		case 2:
			if at := strings.Index(text[1:], "POST"); at >= 0 {
				n = at + 1 + rapid.IntRange(0, 1).Draw(t, "more")
			}
		case 3:
			if at := strings.Index(text, "\r\n\r\n"); at >= 0 {
				n = min(n, at+rapid.IntRange(3, 6).Draw(t, "more"))
			}
		}
		all = append(all, segment{text: text[:n], early: early})
		text, early = text[n:], rapid.Bool().Draw(t, "early")
	}
	return all
}

// oddities are what is unusual about a request, mostly nothing much.
func oddities(t *rapid.T, label string) []string {
	return rapid.SliceOfN(rapid.SampledFrom([]string{
		"", "key", "key", "trace", "trace", "key2", "other", "lf", "onelf", "fold", "length2", "lengthother", "zero", "plus", "space",
		"chunked", "close", "keep", "continue", "1.0", "absolute", "nohost", "host2", "nul", "2k", "4k", "lower",
		"get", "ask", "ask", "put", "path", "crlf", "x", "short", "options", "te",
	}), 0, 3).Draw(t, label)
}

var (
	someValues = []string{"1", "22", "22", "a b", " 1", "1 ", "\t1", "\xe9", "", "z\x00", "1,2", strings.Repeat("v", 300)}
	someBodies = []string{
		"", "a", "bb", "full", "close", "big=3000", "none", "linger", "linger",
		strings.Repeat("z", 3000), strings.Repeat("z", 3900), strings.Repeat("z", 5000),
		post("evil"), strings.Repeat(post("evil"), 60), strings.Repeat("z", 3000) + strings.Repeat(post("evil"), 30),
	}
)

// drawRequest makes a request. It is of the same bytes for the same oddities, but for its
// body and the values that may vary.
func drawRequest(t *rapid.T, odd []string) string {
	body := rapid.SampledFrom(someBodies).Draw(t, "body")
	method, target, proto := "POST", hitsPath, "HTTP/1.1"
	hosts, end, before := []string{"Host: quota"}, "\r\n", ""
	lines, length := []string(nil), []string{fmt.Sprintf("Content-Length: %d", len(body))}
	for _, o := range odd {
		switch o {
		case "key", "key2":
			lines = append(lines, "Idempotency-Key: "+rapid.SampledFrom(someValues).Draw(t, o))
		case "trace":
			lines = append(lines, "Traceparent: "+rapid.SampledFrom(someValues[:3]).Draw(t, o))
		case "lengthother":
			length = append(length, fmt.Sprintf("Content-Length: %d", rapid.IntRange(0, 300).Draw(t, o)))
		case "lf":
			end = "\n"
		case "get", "options":
			method, target, body, length = strings.ToUpper(o), "*", "", nil
		case "ask":
			method, target, body, length = "GET", askPath, "", nil
		case "put":
			method = "PUT"
		case "path":
			target = "/v1/other"
		case "absolute":
			target = "http://other" + target
		case "1.0":
			proto = "HTTP/1.0"
		case "nohost":
			hosts = nil
		case "host2":
			hosts = append(hosts, hosts...)
		case "crlf":
			before = "\r\n"
		case "x":
			before = "X"
		case "short":
			body = body[:len(body)/2]
		case "length2":
			length = append(length, length...)
		case "zero", "plus", "space":
			length = []string{fmt.Sprintf("Content-Length: %s%d", map[string]string{"zero": "0", "plus": "+", "space": " "}[o], len(body))}
		case "chunked":
			length = nil
			body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body)+1, body+"!")
		}
		lines = append(lines, oddLines[o]...)
	}
	lines = append(append(hosts, lines...), length...)
	text := before + method + " " + target + " " + proto + end + strings.Join(lines, end) + end + end + body
	for _, o := range odd {
		if o == "onelf" {
			text = strings.Replace(text, "\r\n", "\n", 1)
		}
	}
	return text
}

var oddLines = map[string][]string{
	"other": {"X-A: 1"}, "fold": {"X-A: 1", " 2"}, "chunked": {"Transfer-Encoding: chunked"}, "te": {"TE: trailers"},
	"close": {"Connection: close"}, "keep": {"Connection: keep-alive"}, "continue": {"Expect: 100-continue"},
	"nul": {"X-A: \x00"}, "2k": {"X-A: " + long[:2000]}, "4k": {"X-A: " + long, "X-B: " + long}, "lower": {"x-lower: a", "traceparent: 5"},
}
