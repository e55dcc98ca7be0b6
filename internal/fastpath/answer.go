package fastpath

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// An answer is the ResponseWriter of a request that is served fast. All of it goes out at
// once when the handler is done.
type answer struct {
	header http.Header
	status int
	length string // the handler's Content-Length
	closes bool   // the handler has set Connection: close
	body   []byte
	out    bytes.Buffer

	second int64  // the second that date shows, Unix time
	date   []byte // the value of Date, kept because writing it costs more than all other headers
}

// maxKept is the size, in bytes, up to which an answer is kept for another request. Larger
// ones go to the garbage collector.
const maxKept = 64 << 10

var answers = sync.Pool{New: func() any { return &answer{header: make(http.Header, 16)} }}

func getAnswer() *answer { return answers.Get().(*answer) }

func putAnswer(a *answer) {
	if cap(a.body) > maxKept || a.out.Cap() > maxKept {
		return
	}
	a.reset()
	answers.Put(a)
}

// reset makes the answer ready for the next request.
func (a *answer) reset() {
	clear(a.header)
	a.status, a.length, a.closes = 0, "", false
	a.body = a.body[:0]
	a.out.Reset()
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	a.status, a.length, a.closes = status, a.header.Get(contentLength), a.header.Get("Connection") == "close"
	b := append(a.out.AvailableBuffer(), "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	b = append(b, "\r\n"...)
	a.out.Write(b)
	_ = a.header.Write(&a.out) // writing to a bytes.Buffer never fails
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.body = append(a.body, p...)
	return len(p), nil
}

// errLength: the body is not as long as the handler's Content-Length says. The connection is
// closed then: its client would read the next answer as a part of this one.
var errLength = errors.New("the handler's Content-Length is not that of its answer")

// send writes the answer as net/http would: the handler's headers, then Date, Content-Length
// and, where closes says so, Connection. now is when it is written.
func (a *answer) send(to io.Writer, now time.Time, closes bool) error {
	a.WriteHeader(http.StatusOK)
	if a.length != "" && a.length != strconv.Itoa(len(a.body)) {
		return errLength
	}
	if second := now.Unix(); second != a.second || len(a.date) == 0 {
		a.second, a.date = second, now.UTC().AppendFormat(a.date[:0], http.TimeFormat)
	}
	b := append(a.out.AvailableBuffer(), "Date: "...)
	b = append(b, a.date...)
	if a.length == "" {
		b = append(b, "\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(a.body)), 10)
	}
	if closes && !a.closes {
		b = append(b, "\r\nConnection: close"...)
	}
	b = append(b, "\r\n\r\n"...)
	a.out.Write(append(b, a.body...))
	_, err := a.out.WriteTo(to)
	return err
}
