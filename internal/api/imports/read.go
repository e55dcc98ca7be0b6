package imports

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"

	"quotad/internal/api/problem"
	"quotad/internal/api/request"
)

const (
	// MaxLine is the maximum length of an import line in bytes, without its end.
	MaxLine = 64 << 10
	// MaxSize is the maximum size of an import's body in bytes.
	MaxSize = 1 << 30
	// MaxGroup is the maximum number of lines that are processed at once.
	MaxGroup = 500
)

var (
	errImportType = &problem.Fault{
		Kind:   problem.KindMediaType,
		Detail: "the body must be declared as Content-Type: application/x-ndjson (or application/jsonl, application/json), in UTF-8",
	}
	errImportLarge = &problem.Fault{Kind: problem.KindTooLarge, Detail: "the body has more than 1 GiB: send it in parts"}
	errLongLine    = &problem.Fault{Kind: problem.KindTooLarge, Detail: "the line has more than 64 KiB"}
)

// checkImport checks the length and the media type in the header of an import.
func checkImport(r *http.Request) error {
	if r.ContentLength > MaxSize {
		return errImportLarge
	}
	return request.CheckMedia(r.Header, errImportType, "application/x-ndjson", "application/jsonl", "application/json")
}

// lineReader reads any number of lines of a body.
type lineReader struct {
	r      *bufio.Reader
	number int   // number of the last line that was read, from 1
	size   int64 // number of bytes read
}

func newLineReader(body io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(body, 2*MaxLine)} // room for a line and its end
}

// next reads a line and trims the white space around it. The line is valid until the next call.
//
// Errors: errLongLine, after which reading may continue; io.EOF at the end of the body; any other error if the
// body is incomplete. For such an error, the line is the part that arrived.
func (l *lineReader) next() ([]byte, error) {
	l.number++
	line, err := l.read()
	long := len(bytes.TrimRight(line, "\r\n")) > MaxLine
	for errors.Is(err, bufio.ErrBufferFull) && l.size <= MaxSize {
		long = true
		_, err = l.read()
	}
	line = bytes.Trim(line, " \t\r\n")
	switch {
	case l.size > MaxSize:
		return line, errImportLarge
	case err != nil && !errors.Is(err, io.EOF):
		return line, request.WhyCut(err)
	case long:
		return nil, errLongLine
	case err != nil && len(line) == 0:
		return nil, io.EOF
	}
	return line, nil
}

func (l *lineReader) read() ([]byte, error) {
	part, err := l.r.ReadSlice('\n')
	l.size += int64(len(part))
	return part, err
}

// ready reports whether a whole line can be read without waiting.
func (l *lineReader) ready() bool {
	b, _ := l.r.Peek(l.r.Buffered()) // Peek cannot fail for buffered bytes
	return bytes.IndexByte(b, '\n') >= 0
}

// group appends the next lines to items, at most MaxGroup. It waits only for the first line, so that the lines
// of a slow client are processed as they arrive. end is io.EOF, or the error that ended the body early.
func (l *lineReader) group(items []item) (all []item, end error) {
	for len(items) < MaxGroup {
		line, err := l.next()
		switch {
		case errors.Is(err, io.EOF):
			return items, err
		case errors.Is(err, errLongLine):
			items = append(items, item{number: l.number, err: err})
		case err != nil:
			if len(line) > 0 {
				items = append(items, item{number: l.number, err: err})
			}
			return items, err
		case len(line) > 0:
			items = append(items, decodeLine(l.number, line))
		}
		if !l.ready() {
			break
		}
	}
	return items, nil
}
