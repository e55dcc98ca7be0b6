package fastpath

import (
	"bytes"
	"errors"
	"io"
	"strconv"
)

// framing follows where requests begin and end in what net/http is given, and refuses one whose end
// two readers may see in two places. net/http takes some of these, such as one with a Content-Length
// and a Transfer-Encoding. A proxy in front that reads it otherwise would take the rest of its body
// for another client's request.
//
// It judges nothing else. Where it cannot follow, net/http refuses the request and ends the
// connection.
type framing struct {
	state  int
	line   []byte // of the line that is under way, what earlier reads had
	left   int64  // bytes that are still to come of a body or chunk
	faulty bool   // nothing more is given to net/http
	below  string // Options.Below

	// Of the head that is under way.
	begun           bool // its first line is over
	old             bool // it is not of HTTP/1.1
	length          int64
	lengths, coding int // lines of Content-Length and Transfer-Encoding
	chunked         bool
}

// The states of framing: what comes next.
const (
	inHead = iota
	inBody
	inChunkSize
	inChunk
	inTrailer
	astray // net/http will not go on either
)

// maxLine is the longest line that is followed, in bytes. net/http takes no head as long as that.
const maxLine = 24 << 10

// shortest is how long the first line of a request is at least.
const shortest = len("X / HTTP/1.1\n")

// errFraming is what net/http gets in place of the end of a line that makes a request faulty. To a
// read error within a head that is not the connection's own it answers 400, and closes.
var errFraming = errors.New("fastpath: where the request ends is not plain")

// read reads for net/http. By one byte it notices, while it answers, that the client goes away. What
// is faulty comes after the request that is being answered, and must not end that.
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

// pass follows p[:n], which has just been read, and returns as much of it as net/http may have.
func (f *framing) pass(p []byte, n int, err error) (int, error) {
	for at := 0; at < n; {
		used, ok := f.step(p[at:n])
		at += used
		if !ok {
			f.faulty = true
			if at--; at == 0 { // the line's LF is kept back
				return 0, errFraming
			}
			return at, nil
		}
	}
	return n, err
}

// begin says that net/http waits for a request, of which it has nothing.
func (f *framing) begin() { *f = framing{line: f.line[:0], faulty: f.faulty, below: f.below} }

// step follows a line, or as much of a body as there is.
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

// smooth replaces what net/http does not take in the target of a request, if the target is below f.below: the
// percent signs of its path, and control characters. p is the rest of the first line, or a part of that.
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

// take follows a line, which ends in LF. It returns false where the request is faulty.
func (f *framing) take(line []byte) bool {
	text, strict := bytes.CutSuffix(line, []byte("\r\n"))
	switch {
	case f.state == inChunkSize:
		return f.takeChunkSize(text, strict)
	case !f.begun && f.state == inHead && len(bytes.TrimSpace(line)) == 0:
		return true // an empty line before a request, which net/http takes or refuses
	case !f.begun && f.state == inHead && len(line) < shortest:
		f.state = astray // net/http says so: of less than four bytes of a request it says nothing
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
	case text[0] == ' ' || text[0] == '\t': // the line before goes on here, or does not
		return false
	}
	f.takeField(text)
	return true
}

// takeField notes what a field of a head says of the request's end.
func (f *framing) takeField(text []byte) {
	name, value, _ := bytes.Cut(text, []byte(":"))
	value = bytes.Trim(value, " \t")
	switch {
	case bytes.EqualFold(name, []byte(contentLength)):
		if f.lengths++; f.lengths == 1 { // net/http refuses another that differs
			n, err := strconv.ParseUint(string(value), 10, 63)
			if f.length = int64(n); err != nil { // of 63 bits
				f.length = -1
			}
		}
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		f.coding++
		f.chunked = bytes.EqualFold(value, []byte("chunked"))
	}
}

// takeHead says what follows a head.
func (f *framing) takeHead() bool {
	switch {
	case f.coding > 0 && (f.lengths > 0 || f.old):
		return false
	case f.coding == 1 && f.chunked:
		f.state = inChunkSize
	case f.coding > 0 || f.length < 0: // net/http refuses these
		f.state = astray
	case f.length == 0:
		f.begin()
	default:
		f.state, f.left = inBody, f.length
	}
	return true
}

// takeChunkSize follows the line before a chunk. net/http refuses one that ends in LF alone.
func (f *framing) takeChunkSize(text []byte, strict bool) bool {
	size, _, _ := bytes.Cut(text, []byte(";"))
	n, err := strconv.ParseUint(string(bytes.TrimRight(size, " \t")), 16, 62)
	switch {
	case !strict || err != nil:
		f.state = astray
	case n == 0:
		f.state = inTrailer
	default:
		f.state, f.left = inChunk, int64(n)+2 // of 62 bits; a chunk ends in CR LF
	}
	return true
}
