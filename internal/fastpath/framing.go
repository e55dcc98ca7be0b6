package fastpath

import (
	"bytes"
	"errors"
	"io"
	"strconv"
)

// framing tracks where requests begin and end in the bytes for net/http. It rejects a request whose end two
// readers may find at different positions. net/http accepts some of these requests, such as a request with both
// Content-Length and Transfer-Encoding. A proxy that interprets such a request differently would treat the rest
// of its body as another client's request.
//
// framing checks nothing else. If it cannot follow a request, net/http rejects the request and closes the
// connection.
type framing struct {
	state  int
	line   []byte // part of the current line from earlier reads
	left   int64  // remaining bytes of a body or chunk
	faulty bool   // net/http receives no more bytes
	below  string // Options.Below

	// The following fields describe the current head.
	begun           bool // the first line is complete
	old             bool // the version is not HTTP/1.1
	length          int64
	lengths, coding int // numbers of Content-Length and Transfer-Encoding lines
	chunked         bool
}

// The states of framing are the elements that may follow next.
const (
	inHead = iota
	inBody
	inChunkSize
	inChunk
	inTrailer
	astray // net/http will not continue either
)

// maxLine is the maximum length in bytes of a line that framing follows. net/http accepts only shorter heads.
const maxLine = 24 << 10

// shortest is the minimum length of a request's first line.
const shortest = len("X / HTTP/1.1\n")

// errFraming is the error that net/http receives instead of the end of a faulty line. For a read error within a
// head that is not an error of the connection, net/http responds with 400 and closes the connection.
var errFraming = errors.New("fastpath: where the request ends is not plain")

// read reads for net/http. While net/http responds, it reads one byte to detect a disconnected client. A fault
// in the bytes after the current request must not end the current request.
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

// pass processes p[:n], which has just been read, and returns the number of its bytes that net/http may receive.
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

// begin records that net/http waits for a request and has received no byte of it.
func (f *framing) begin() { *f = framing{line: f.line[:0], faulty: f.faulty, below: f.below} }

// step processes a line, or the available part of a body.
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

// smooth replaces characters that net/http rejects in the target of a request, if the target is below f.below:
// the percent signs of the path, and control characters. p is the rest of the first line, or a part of the rest.
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

// take processes a line, which ends in LF. It returns false if the request is faulty.
func (f *framing) take(line []byte) bool {
	text, strict := bytes.CutSuffix(line, []byte("\r\n"))
	switch {
	case f.state == inChunkSize:
		return f.takeChunkSize(text, strict)
	case !f.begun && f.state == inHead && len(bytes.TrimSpace(line)) == 0:
		return true // an empty line before a request, which net/http accepts or rejects
	case !f.begun && f.state == inHead && len(line) < shortest:
		f.state = astray // net/http reports the fault, because it does not report less than four bytes of a request
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
	case text[0] == ' ' || text[0] == '\t': // this line may continue the previous line
		return false
	}
	f.takeField(text)
	return true
}

// takeField records a header field that determines the request's end.
func (f *framing) takeField(text []byte) {
	name, value, _ := bytes.Cut(text, []byte(":"))
	value = bytes.Trim(value, " \t")
	switch {
	case bytes.EqualFold(name, []byte(contentLength)):
		if f.lengths++; f.lengths == 1 { // net/http rejects a second, different length
			n, err := strconv.ParseUint(string(value), 10, 63)
			if f.length = int64(n); err != nil { // a number of 63 bits
				f.length = -1
			}
		}
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		f.coding++
		f.chunked = bytes.EqualFold(value, []byte("chunked"))
	}
}

// takeHead determines the element that follows a head.
func (f *framing) takeHead() bool {
	switch {
	case f.coding > 0 && (f.lengths > 0 || f.old):
		return false
	case f.coding == 1 && f.chunked:
		f.state = inChunkSize
	case f.coding > 0 || f.length < 0: // net/http rejects these
		f.state = astray
	case f.length == 0:
		f.begin()
	default:
		f.state, f.left = inBody, f.length
	}
	return true
}

// takeChunkSize processes the line before a chunk. net/http rejects a line that ends in LF alone.
func (f *framing) takeChunkSize(text []byte, strict bool) bool {
	size, _, _ := bytes.Cut(text, []byte(";"))
	n, err := strconv.ParseUint(string(bytes.TrimRight(size, " \t")), 16, 62)
	switch {
	case !strict || err != nil:
		f.state = astray
	case n == 0:
		f.state = inTrailer
	default:
		f.state, f.left = inChunk, int64(n)+2 // 62 bits; a chunk ends in CR LF
	}
	return true
}
