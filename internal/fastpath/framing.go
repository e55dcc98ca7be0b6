package fastpath

import (
	"bytes"
	"errors"
	"io"
	"strconv"
)

// framing tracks the start and end of each request in the bytes for net/http. It rejects a request whose end two
// readers could find at two places. net/http accepts some of these requests, such as a request with a
// Content-Length and a Transfer-Encoding. A proxy in front of quotad that parses the request differently would
// treat the rest of its body as another client's request.
//
// framing validates nothing else. If it cannot find the end of a request, it stops tracking, because net/http
// rejects such a request and closes the connection.
type framing struct {
	state  int
	line   []byte // the part of the current line from earlier reads
	left   int64  // the remaining bytes of a body or chunk
	faulty bool   // net/http receives no more bytes
	below  string // Options.Below

	// State of the head that is being read.
	begun           bool // the first line has been read
	old             bool // the version is not HTTP/1.1
	length          int64
	lengths, coding int // numbers of Content-Length and Transfer-Encoding lines
	chunked         bool
}

// The states of framing, which specify the part of a request that comes next.
const (
	inHead = iota
	inBody
	inChunkSize
	inChunk
	inTrailer
	astray // the end is unknown, and net/http will reject the request, too
)

// maxLine is the maximum length in bytes of a line that framing tracks. net/http rejects a head of that length.
const maxLine = 24 << 10

// shortest is the minimum length of a request's first line.
const shortest = len("X / HTTP/1.1\n")

// errFraming is the read error that net/http receives in place of the end of the faulty line. If a read within a
// head returns an error that is not a network error, net/http responds with 400 and closes the connection.
var errFraming = errors.New("fastpath: where the request ends is not plain")

// read reads for net/http. While net/http serves a request, it reads a single byte in the background to detect a
// disconnected client. A fault in the bytes after that request must not end the request, so read then discards
// bytes until the connection fails.
func (f *framing) read(from io.Reader, p []byte) (int, error) {
	if f.faulty {
		for len(p) == 1 {
			if _, err := from.Read(p); err != nil {
				return 0, err
			}
		}
		return 0, errFraming
	}
	n, err := from.Read(p)
	return f.pass(p, n, err)
}

// pass tracks p[:n], which has just been read, and returns the number of bytes that net/http may receive.
func (f *framing) pass(p []byte, n int, err error) (int, error) {
	for at := 0; at < n; {
		used, ok := f.step(p[at:n])
		at += used
		if !ok {
			f.faulty = true
			if at--; at == 0 { // the line's LF is withheld
				return 0, errFraming
			}
			return at, nil
		}
	}
	return n, err
}

// begin resets the state for a new request, of which net/http has no byte yet.
func (f *framing) begin() { *f = framing{line: f.line[:0], faulty: f.faulty, below: f.below} }

// step tracks one line, or as much of a body as p contains.
func (f *framing) step(p []byte) (used int, ok bool) {
	switch f.state {
	case astray:
		return len(p), true
	case inBody, inChunk:
		used = int(min(f.left, int64(len(p))))
		if f.left -= int64(used); f.left == 0 {
			if f.state == inChunk {
				f.state = inChunkSize
			} else {
				f.begin()
			}
		}
		return used, true
	}
	end := bytes.IndexByte(p, '\n')
	if !f.begun && f.state == inHead && f.below != "" {
		first, _, _ := bytes.Cut(p, []byte("\n"))
		f.smooth(first)
	}
	if end < 0 {
		if f.line = append(f.line, p...); len(f.line) > maxLine {
			f.state = astray
		}
		return len(p), true
	}
	line := p[:end+1]
	if len(f.line) > 0 {
		line = append(f.line, line...)
		f.line = line[:0]
	}
	return end + 1, f.take(line)
}

// smooth replaces characters that net/http rejects in the target of a request: control characters, and percent
// signs in the path. It does so only if the target begins with f.below. p is the rest of the first line, or a
// part of the rest.
func (f *framing) smooth(p []byte) {
	line := p
	if len(f.line) > 0 {
		line = append(f.line, p...)
		f.line = line[:len(line)-len(p)]
	}
	_, target, _ := bytes.Cut(line, []byte(" "))
	if !bytes.HasPrefix(target, []byte(f.below)) {
		return
	}
	inPath := true
	for i, from := len(line)-len(target)+len(f.below), len(line)-len(p); i < len(line) && line[i] != ' '; i++ {
		c := line[i]
		inPath = inPath && c != '?'
		if i >= from && (c == '%' && inPath || c < ' ' && c != '\r' || c == 0x7f) {
			p[i-from] = '_'
		}
	}
}

// take tracks a line, which ends in LF. It returns false if the request is faulty.
func (f *framing) take(line []byte) bool {
	text, strict := bytes.CutSuffix(line, []byte("\r\n"))
	switch {
	case f.state == inChunkSize:
		return f.takeChunkSize(text, strict)
	case !f.begun && f.state == inHead && len(bytes.TrimSpace(line)) == 0:
		return true // net/http accepts or rejects an empty line before a request
	case !f.begun && f.state == inHead && len(line) < shortest:
		f.state = astray // net/http rejects the line itself, and needs at least four bytes to respond
		return true
	case !strict:
		return false
	case f.state == inTrailer:
		if len(text) == 0 {
			f.begin()
		}
		return true
	case !f.begun:
		f.begun, f.old = true, !bytes.HasSuffix(text, []byte(" HTTP/1.1"))
		return true
	case len(text) == 0:
		return f.takeHead()
	case text[0] == ' ' || text[0] == '\t': // readers disagree on whether this line continues the line before
		return false
	}
	f.takeField(text)
	return true
}

// takeField records a header field that determines the end of the request.
func (f *framing) takeField(text []byte) {
	name, value, _ := bytes.Cut(text, []byte(":"))
	value = bytes.Trim(value, " \t")
	switch {
	case bytes.EqualFold(name, []byte(contentLength)):
		if f.lengths++; f.lengths == 1 { // net/http rejects a second, different length
			n, err := strconv.ParseUint(string(value), 10, 63)
			if f.length = int64(n); err != nil { // more than 63 bits, or no number
				f.length = -1
			}
		}
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		f.coding++
		f.chunked = bytes.EqualFold(value, []byte("chunked"))
	}
}

// takeHead determines the part of the request that follows the head. It returns false if the request is faulty.
func (f *framing) takeHead() bool {
	switch {
	case f.coding > 0 && (f.lengths > 0 || f.old):
		return false
	case f.coding == 1 && f.chunked:
		f.state = inChunkSize
	case f.coding > 0 || f.length < 0: // net/http rejects these heads
		f.state = astray
	case f.length == 0:
		f.begin()
	default:
		f.state, f.left = inBody, f.length
	}
	return true
}

// takeChunkSize tracks the line before a chunk. net/http rejects a line that ends in LF alone.
func (f *framing) takeChunkSize(text []byte, strict bool) bool {
	size, _, _ := bytes.Cut(text, []byte(";"))
	n, err := strconv.ParseUint(string(bytes.TrimRight(size, " \t")), 16, 62)
	switch {
	case !strict || err != nil:
		f.state = astray
	case n == 0:
		f.state = inTrailer
	default:
		f.state, f.left = inChunk, int64(n)+2 // n has 62 bits; a chunk ends in CR LF
	}
	return true
}
