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
	// MaxLine is how long a line of an import may be, in bytes, without its end.
	MaxLine = 64 << 10
	// MaxSize is how large its body may be, in bytes.
	MaxSize = 1 << 30
	// MaxGroup is how many lines are done at once.
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

// checkImport checks the length and the media type that an import's head gives for its body.
func checkImport(r *http.Request) error {
	if r.ContentLength > MaxSize {
		return errImportLarge
	}
	return request.CheckMedia(r.Header, errImportType, "application/x-ndjson", "application/jsonl", "application/json")
}

// lineReader reads lines of a body, whatever their number.
type lineReader struct {
	r      *bufio.Reader
	number int   // of the line that was read last, from 1
	size   int64 // bytes read
}

func newLineReader(body io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(body, 2*MaxLine)} // it must hold a line and its end
}

// next reads a line and trims the white space around it. The line is valid until the next
// call.
//
// Errors: errLongLine, after which reading may go on; io.EOF at the end of the body; any other
// error where the body broke off. Then the line is what had arrived of it.
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

// group appends the next lines to items, MaxGroup at most. It waits for the first line only:
// the lines of a slow client are done as they arrive. end is io.EOF, or why the body broke
// off.
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
