package fastpath

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
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
	fields []field // those of AddHeader; when it is sent, the others too
	text   []byte  // their values
	status int
	body   []byte
	out    []byte

	second int64  // that date says, Unix time
	date   []byte // a Date, which costs more to write than all other headers
}

// field is one line of the head: its name, and where in text its value is.
type field struct {
	name     string
	from, to int
}

// Answers that have grown beyond this, in bytes, are left to the garbage collector.
const maxKept = 64 << 10

var answers = sync.Pool{New: func() any { return &answer{header: make(http.Header, 16)} }}

func getAnswer() *answer { return answers.Get().(*answer) }

func putAnswer(a *answer) {
	if cap(a.body) > maxKept || cap(a.out) > maxKept || cap(a.text) > maxKept {
		return
	}
	clear(a.header)
	a.fields, a.text = a.fields[:0], a.text[:0]
	a.status, a.body = 0, a.body[:0]
	answers.Put(a)
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// AddHeader implements HeaderAdder.
func (a *answer) AddHeader(name string, value []byte) {
	if a.status == 0 {
		addField(a, name, value)
	}
}

// AddHeaderString implements HeaderAdder.
func (a *answer) AddHeaderString(name, value string) {
	if a.status == 0 {
		addField(a, name, value)
	}
}

func addField[T string | []byte](a *answer, name string, value T) {
	from := len(a.text)
	a.text = append(a.text, value...)
	a.fields = append(a.fields, field{name, from, len(a.text)})
}

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
	for name, values := range a.header {
		for _, value := range values {
			addField(a, name, value)
		}
	}
	slices.SortStableFunc(a.fields, func(x, y field) int { return strings.Compare(x.name, y.name) })
	for _, f := range a.fields {
		b = append(b, f.name...)
		b = append(b, ": "...)
		value := len(b)
		b = append(b, textproto.TrimBytes(a.text[f.from:f.to])...)
		oneLine(b[value:])
		b = append(b, "\r\n"...)
	}
	return b
}

// oneLine makes a value one line: what is behind its end would be a header of its own.
func oneLine(value []byte) {
	for _, end := range []byte("\r\n") {
		for i := bytes.IndexByte(value, end); i >= 0; i = bytes.IndexByte(value, end) {
			value[i] = ' '
		}
	}
}
