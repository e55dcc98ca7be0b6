package api

import (
	"net/http"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"quotad/internal/calendar"
	"quotad/internal/quota"
)

// A buffer is what one hit needs beside its own strings, kept for the next.
type buffer struct {
	b      []byte
	views  []quota.View
	policy *policy // of the limits of the answer before
	last   subject // of the hit before: its strings are shared with the next one
}

// Buffers that a large batch has grown are left to the garbage collector.
const maxBufferKept = 64 << 10

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 4<<10), views: make([]quota.View, 0, 8)} }}

func getBuffer() *buffer { return buffers.Get().(*buffer) }

func putBuffer(buf *buffer) {
	if cap(buf.b) > maxBufferKept {
		return
	}
	clear(buf.views) // of which there may be many, of old plans
	buf.b, buf.views = buf.b[:0], buf.views[:0]
	buffers.Put(buf)
}

// countedBody is the size from which net/http would send a body in chunks; it counts
// shorter ones itself, and cheaper.
const countedBody = 2048

// Header values shared by all answers; net/http only reads them.
var (
	plainJSON   = []string{"application/json"}
	problemJSON = []string{"application/problem+json"}
	noStore     = []string{"no-store"}
)

// writeBody answers with a whole body and returns the status. Nothing here may be kept
// by a cache between, so every answer says so.
func writeBody(w http.ResponseWriter, status int, contentType []string, body []byte) int {
	if len(body) >= countedBody {
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	writeHead(w, status, contentType)
	// An error means that the client is gone; there is nobody left to tell.
	_, _ = w.Write(body)
	return status
}

// writeHead writes the head of an answer.
func writeHead(w http.ResponseWriter, status int, contentType []string) {
	h := w.Header()
	h["Cache-Control"] = noStore
	h["Content-Type"] = contentType
	w.WriteHeader(status)
}

// appendString appends a JSON string. Keys and names are ASCII almost always; other
// text, that of a detail, goes the long way, invalid UTF-8 replaced.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			b, _ = jsontext.AppendQuote(b, s) // its error is the replacing
			return b
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// appendTime appends an instant in µs as a JSON string: RFC 3339 in UTC, up to
// microseconds. What lies beyond the year 9999 cannot be written and is its last instant.
func appendTime(b []byte, at int64) []byte {
	at = min(max(at, calendar.MinInstant), calendar.MaxInstant)
	b = append(b, '"')
	b = time.UnixMicro(at).UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// appendReset appends the instant of a reset, or null for never.
func appendReset(b []byte, at int64) []byte {
	if at == quota.NoReset {
		return append(b, "null"...)
	}
	return appendTime(b, at)
}

// appendWait appends a wait in whole milliseconds, rounded up, or null for never.
func appendWait(b []byte, wait int64) []byte {
	if wait == quota.Never {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, ceilDiv(wait, 1000), 10)
}

// ceilDiv divides and rounds up, for b > 0; what is below 0 counts as 0.
func ceilDiv(a, b int64) int64 {
	if a <= 0 {
		return 0
	}
	return (a-1)/b + 1
}
