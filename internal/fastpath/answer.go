package fastpath

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An answer is the ResponseWriter of a request that is served fast. All of it goes out at
// once when the handler is done.
type answer struct {
	header http.Header
	status int
	body   []byte
	names  []string
	out    []byte

	second int64  // that date says, Unix time
	date   []byte // a Date, which costs more to write than all other headers
}

// Answers that have grown beyond this, in bytes, are left to the garbage collector.
const maxKept = 64 << 10

var answers = sync.Pool{New: func() any { return &answer{header: make(http.Header, 16)} }}

func getAnswer() *answer { return answers.Get().(*answer) }

func putAnswer(a *answer) {
	if cap(a.body) > maxKept || cap(a.out) > maxKept {
		return
	}
	clear(a.header)
	a.status, a.body = 0, a.body[:0]
	answers.Put(a)
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.body = append(a.body, p...)
	return len(p), nil
}

// errLength ends a connection on which the next answer would be read as part of this one.
var errLength = errors.New("the handler's Content-Length is not that of its answer")

// send writes the answer as net/http would: the headers by their names, then Date and
// Content-Length. now is when it is written.
func (a *answer) send(to io.Writer, now time.Time) error {
	a.WriteHeader(http.StatusOK)
	if said := a.header[contentLength]; len(said) > 0 && said[0] != strconv.Itoa(len(a.body)) {
		return errLength
	}
	b := append(a.out[:0], "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(a.status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(a.status)...)
	b = append(b, "\r\n"...)
	b = a.appendHeaders(b)
	b = append(b, "Date: "...)
	if second := now.Unix(); second != a.second || len(a.date) == 0 {
		a.second, a.date = second, now.UTC().AppendFormat(a.date[:0], http.TimeFormat)
	}
	b = append(b, a.date...)
	if len(a.header[contentLength]) == 0 {
		b = append(b, "\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(a.body)), 10)
	}
	b = append(b, "\r\n\r\n"...)
	a.out = append(b, a.body...)
	_, err := to.Write(a.out)
	return err
}

// appendHeaders is http.Header.Write without its copies; names must be canonical.
func (a *answer) appendHeaders(b []byte) []byte {
	a.names = a.names[:0]
	for name := range a.header {
		a.names = append(a.names, name)
	}
	slices.Sort(a.names)
	for _, name := range a.names {
		for _, value := range a.header[name] {
			if strings.ContainsAny(value, "\r\n") { // or it would be a header of its own
				value = oneLine.Replace(value)
			}
			b = append(b, name...)
			b = append(b, ": "...)
			b = append(b, value...)
			b = append(b, "\r\n"...)
		}
	}
	return b
}

var oneLine = strings.NewReplacer("\r", " ", "\n", " ")
