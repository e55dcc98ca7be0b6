package fastpath

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
)

// A head is the head of a request that net/http has read. It is split at the values that may vary.
type head struct {
	parts []part
	tail  []byte // the bytes after the last part, including the empty line
	like  *http.Request
	body  body
}

// A part is bytes that must be repeated exactly, followed by the value of a header, which may vary.
type part struct {
	before []byte
	name   string // the header's name in canonical form
	value  string // the header's value in the last request
}

// maxHead is the maximum length in bytes of a head that is learned.
const maxHead = 2 << 10

// maxLength is the maximum number of digits of a Content-Length. A longer body does not fit into bufferSize.
const maxLength = 5

const contentLength = "Content-Length"

var keepAlive = []string{"keep-alive"}

var emptyLine = []byte("\r\n\r\n")

// headEnd returns the length of the head at the start of p. It returns 0 if the head is longer than maxHead or
// than p.
func headEnd(p []byte) int {
	if end := bytes.Index(p[:min(len(p), maxHead)], emptyLine); end > 0 {
		return end + len(emptyLine)
	}
	return 0
}

// newHead returns the head for text, the bytes that net/http has read as r. It returns nil unless text has only
// one meaning. The request must have a body with a Content-Length, or be a GET or HEAD request without a
// Content-Length and thus without a body. The lines must follow RFC 9112 without its leniencies. The only
// permitted header about the connection is Connection: keep-alive.
func newHead(text []byte, r *http.Request, varies []string) *head {
	lengths := len(r.Header[contentLength])
	if r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.Close || len(r.TransferEncoding) > 0 || lengths > 1 {
		return nil
	}
	if lengths == 0 && r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	for _, name := range []string{"Expect", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		if _, said := r.Header[name]; said {
			return nil
		}
	}
	// Many clients send keep-alive, which is HTTP/1.1's default anyway.
	if said := r.Header["Connection"]; len(said) > 0 && !slices.Equal(said, keepAlive) {
		return nil
	}
	if !plainLines(text) || !means(text, r) {
		return nil
	}
	h := &head{}
	h.cut(bytes.Clone(text), varies)
	for _, p := range h.parts {
		if len(r.Header[p.name]) != 1 { // the header is repeated, but note sets only one value
			return nil
		}
	}
	// net/http merges several equal Content-Length lines into one. Each of these lines would have to be a part.
	cut := slices.ContainsFunc(h.parts, func(p part) bool { return p.name == contentLength })
	if cut != (lengths == 1) || bytes.Count(bytes.ToLower(text), []byte("\ncontent-length:")) != lengths {
		return nil
	}
	return h
}

// plainLines reports whether each line ends in CR LF, contains no other CR or LF, and does not continue the line
// before it.
func plainLines(text []byte) bool {
	for line := range bytes.SplitSeq(text, []byte("\r\n")) {
		if bytes.ContainsAny(line, "\r\n") || len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
			return false
		}
	}
	return true
}

// means reports whether text is the head of r. If a client sent several requests at once, text may be the head
// of another request.
func means(text []byte, r *http.Request) bool {
	given, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
	return err == nil && given.Method == r.Method && given.RequestURI == r.RequestURI && given.Host == r.Host &&
		given.Proto == r.Proto && given.ContentLength == r.ContentLength && reflect.DeepEqual(given.Header, r.Header)
}

// cut splits text into parts at the values of Content-Length and of the headers in varies.
func (h *head) cut(text []byte, varies []string) {
	from := 0
	for at := 0; at < len(text); {
		line := text[at : at+bytes.Index(text[at:], emptyLine[:2])]
		if name, value, ok := bytes.Cut(line, []byte(": ")); ok && at > 0 {
			name := http.CanonicalHeaderKey(string(name))
			if (name == contentLength || slices.Contains(varies, name)) && valueEnd(value) == len(value) {
				start := at + len(line) - len(value)
				h.parts = append(h.parts, part{before: text[from:start], name: name, value: string(value)})
				from = start + len(value)
			}
		}
		at += len(line) + 2
	}
	h.tail = text[from:]
}

// valueEnd returns the length of the visible ASCII text at the start of p. Only such a value may vary.
func valueEnd(p []byte) int {
	for i, c := range p {
		if c <= ' ' || c > '~' {
			return i
		}
	}
	return len(p)
}

// match reports whether p begins with the same head, and records the values that vary. body and end are the
// start and the end of the request's body; end may be beyond p.
func (h *head) match(p []byte) (body, end int, ok bool) {
	if h == nil {
		return 0, 0, false
	}
	length := 0
	for i := range h.parts {
		part := &h.parts[i]
		if !bytes.HasPrefix(p[body:], part.before) {
			return 0, 0, false
		}
		body += len(part.before)
		value := p[body : body+valueEnd(p[body:])]
		body += len(value)
		if part.name == contentLength {
			if length, ok = digits(value); !ok {
				return 0, 0, false
			}
		}
		h.note(part, value)
	}
	if !bytes.HasPrefix(p[body:], h.tail) {
		return 0, 0, false
	}
	body += len(h.tail)
	return body, body + length, true
}

// note sets the current value of a part.
func (h *head) note(part *part, value []byte) {
	if string(value) != part.value {
		part.value = string(value)
		h.like.Header[part.name] = []string{part.value}
	}
}

// digits parses a Content-Length with at most maxLength digits and without a leading zero.
func digits(value []byte) (int, bool) {
	if len(value) == 0 || len(value) > maxLength || value[0] == '0' && len(value) > 1 {
		return 0, false
	}
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(string(value))
	return n, err == nil
}

// request returns the head's request with another body. It returns the same object each time, so handlers must
// not keep it.
func (h *head) request(b []byte) *http.Request {
	h.body.b = b
	h.like.Body, h.like.ContentLength = &h.body, int64(len(b))
	return h.like
}

// body is the body of a request, which is completely in memory.
type body struct{ b []byte }

func (b *body) Read(p []byte) (int, error) {
	n := copy(p, b.b)
	b.b = b.b[n:]
	if len(b.b) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func (b *body) Close() error { return nil }
