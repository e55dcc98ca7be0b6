package respond

import (
	"math"
	"net/http"
	"strconv"
	"sync"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// ResetStyle is what X-RateLimit-Reset says.
type ResetStyle int

// The styles: whole seconds left, rounded up (default), the Unix time of the reset in
// seconds, or milliseconds left.
const (
	ResetSeconds ResetStyle = iota
	ResetEpoch
	ResetMillis
)

// second is in µs, as all time is.
const second int64 = 1e6

// maxField is the largest integer of a structured field (RFC 9651).
const maxField int64 = 1e15 - 1

// Bounds of RateLimit-Policy, in bytes and limits. RateLimit is about as long. Many clients
// and proxies take a head of 8 KiB at most.
const (
	maxListed       = 3500
	maxLimitsListed = 20
)

// QuotaHeaders sets the quota headers of a decision, whose views are in the buffer:
// RateLimit-Policy and RateLimit (IETF draft 10), X-RateLimit-*, and Retry-After for a
// refusal. at is what the customer's clock showed, see Decision.Now. wait is its retry-after, µs or Never.
//
// X-RateLimit-* are of one limit, see before. No header names a shadow limit. RateLimit-Policy and RateLimit name the first limits, as
// many as fit into maxListed and maxLimitsListed.
//
// Each hit pays for these headers. So the values that depend only on the limits are kept in
// buf.policy.
func (buf *Buffer) QuotaHeaders(h http.Header, style ResetStyle, at, wait int64) {
	views := buf.Views
	if len(views) == 0 {
		return
	}
	if !buf.policy.of(views) {
		buf.policy = newPolicy(views)
	}
	told := -1 // the limit of X-RateLimit-*
	b := buf.B[:0]
	for i := range views {
		if views[i].Limit.Mode == model.Shadow {
			continue
		}
		if told < 0 || before(&views[i], &views[told], wait != 0) {
			told = i
		}
		if i < buf.policy.listed {
			b = appendState(b, &views[i], at, len(b) > 0)
		}
	}
	if told < 0 {
		return
	}
	buf.B = b
	h["RateLimit"] = []string{string(b)}
	h["RateLimit-Policy"] = buf.policy.text
	if wait > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(ceilDiv(wait, second), 10)}
	}
	h["X-RateLimit-Limit"] = buf.policy.capacity[told : told+1 : told+1]
	h["X-RateLimit-Remaining"] = []string{strconv.FormatInt(views[told].Remaining, 10)}
	if resetAt := views[told].ResetAt; resetAt != model.NoReset {
		h["X-RateLimit-Reset"] = []string{strconv.FormatInt(resetValue(resetAt, at, style), 10)}
	}
}

// before reports whether X-RateLimit-* are rather of view a than of view b, which comes earlier in
// the plan. Of a refusal they are of the hard limit with the longest wait, else of the limit with the
// least remaining. Of equals they are of the one with the latest reset.
func before(a, b *model.View, refused bool) bool {
	if refused {
		waitA, waitB := waitOf(a), waitOf(b)
		if waitA != waitB {
			return waitA > waitB
		}
		if waitA > 0 {
			return a.ResetAt > b.ResetAt
		}
	}
	if a.Remaining != b.Remaining {
		return a.Remaining < b.Remaining
	}
	return a.ResetAt > b.ResetAt // NoReset is the latest
}

// waitOf is how long a hard limit refuses, in µs, never being the longest time. It is 0 of a limit
// that does not refuse.
func waitOf(v *model.View) int64 {
	switch {
	case v.Limit.Mode != model.Hard:
		return 0
	case v.RetryAfter == model.Never:
		return math.MaxInt64
	}
	return v.RetryAfter
}

// policy is the header values that depend on the limits only, and not on what is left of them.
// It never changes, and answers share it.
type policy struct {
	limits   []*model.Limit
	listed   int      // how many of limits, from the first on, are named, without shadows
	text     []string // RateLimit-Policy
	capacity []string // X-RateLimit-Limit, of each
}

// of reports whether the policy is that of these views' limits.
func (p *policy) of(views []model.View) bool {
	if p == nil || len(p.limits) != len(views) {
		return false
	}
	for i := range views {
		if p.limits[i] != views[i].Limit {
			return false
		}
	}
	return true
}

func newPolicy(views []model.View) *policy {
	p := &policy{limits: make([]*model.Limit, 0, len(views)), listed: len(views), capacity: make([]string, 0, len(views))}
	var text []byte
	for i := range views {
		l := views[i].Limit
		p.limits = append(p.limits, l)
		p.capacity = append(p.capacity, strconv.FormatInt(l.Capacity(), 10))
		if l.Mode == model.Shadow || i >= p.listed {
			continue
		}
		before := len(text)
		if text = appendPolicy(text, l, before > 0); len(text) > maxListed || i >= maxLimitsListed {
			text, p.listed = text[:before], i
		}
	}
	p.text = []string{string(text)}
	return p
}

// appendPolicy appends a limit's policy: "hourly";q=5000;w=3600. Names need no escaping:
// Compile lets in letters, digits and . _ : - only.
func appendPolicy(b []byte, l *model.Limit, more bool) []byte {
	if more {
		b = append(b, ", "...)
	}
	b = append(b, '"')
	b = append(b, l.Name...)
	b = append(b, `";q=`...)
	b = strconv.AppendInt(b, l.Capacity(), 10)
	if w, ok := windowSeconds(l); ok {
		b = append(b, ";w="...)
		b = strconv.AppendInt(b, w, 10)
	}
	return b
}

// appendState appends a limit's state: "hourly";r=4999;t=3600, without t when the whole
// quota never comes back by itself.
func appendState(b []byte, v *model.View, at int64, more bool) []byte {
	if more {
		b = append(b, ", "...)
	}
	b = append(b, '"')
	b = append(b, v.Limit.Name...)
	b = append(b, `";r=`...)
	b = strconv.AppendInt(b, v.Remaining, 10)
	if v.ResetAt == model.NoReset {
		return b
	}
	b = append(b, ";t="...)
	return strconv.AppendInt(b, min(ceilDiv(v.ResetAt-at, second), maxField), 10)
}

// windowSeconds is the parameter w: the window, if it is whole seconds. Of a limit that refills it
// is the time in which the bucket fills. There is none for an allocation, for a calendar window,
// and where the bucket never fills.
func windowSeconds(l *model.Limit) (int64, bool) {
	if l.Algorithm.Refills() {
		full, ok := l.FillTime()
		return ceilDiv(full, second), ok
	}
	return l.Window / second, l.Window > 0 && l.Window%second == 0
}

func resetValue(resetAt, at int64, style ResetStyle) int64 {
	switch style {
	case ResetEpoch:
		return ceilDiv(resetAt, second)
	case ResetMillis:
		return ceilDiv(resetAt-at, 1000)
	}
	return ceilDiv(resetAt-at, second)
}

// A Buffer is the memory that one answer needs beside its own strings. A pool keeps it for the
// next answer.
type Buffer struct {
	B      []byte
	Views  []model.View
	policy *policy // of the limits of the answer before
	Last   Subject // of the hit before: its strings are shared with the next one

	From   queue.SenderID // whose share of the budget is taken; set before the first Hold
	budget *Budget
	held   int64 // bytes taken from the budget
}

// maxBufferKept is the largest buffer that the pool keeps, in bytes. Larger ones, which large
// batches make, go to the garbage collector.
const maxBufferKept = 64 << 10

var buffers = sync.Pool{New: func() any { return &Buffer{B: make([]byte, 0, Free), Views: make([]model.View, 0, 8)} }}

// GetBuffer returns an empty buffer, which is the caller's until PutBuffer.
func GetBuffer() *Buffer { return buffers.Get().(*Buffer) }

// BufferFor is GetBuffer for a request of a sender.
func BufferFor(from queue.SenderID) *Buffer {
	buf := GetBuffer()
	buf.From = from
	return buf
}

// PutBuffer takes a buffer back; nobody may use it, or what it holds, any more.
func PutBuffer(buf *Buffer) {
	buf.Release()
	buf.From = ""
	if cap(buf.B) > maxBufferKept {
		return
	}
	clear(buf.Views) // else the pool would keep the limits of old plans alive
	buf.B, buf.Views = buf.B[:0], buf.Views[:0]
	buffers.Put(buf)
}

// Room is how many bytes B may have now.
func (buf *Buffer) Room() int { return min(cap(buf.B), Free+int(buf.held)) }

// Grow makes room for size bytes in B. Errors: those of Hold.
func (buf *Buffer) Grow(budget *Budget, size int) error {
	if err := buf.Hold(budget, size); err != nil {
		return err
	}
	if size > cap(buf.B) {
		grown := make([]byte, len(buf.B), size)
		copy(grown, buf.B)
		buf.B = grown
	}
	return nil
}

// Hold takes from the budget what size bytes need beyond those that are held already, until
// Release. A buffer has the same budget each time. Errors: ErrMemory, ErrMemoryShare.
func (buf *Buffer) Hold(budget *Budget, size int) error {
	n := int64(size) - Free - buf.held
	if n <= 0 {
		return nil
	}
	if err := budget.take(buf.From, buf.held, n); err != nil {
		return err
	}
	buf.budget, buf.held = budget, buf.held+n
	return nil
}

// Release gives back what is held.
func (buf *Buffer) Release() {
	if buf.held > 0 {
		buf.budget.shares.Give(buf.From, buf.held)
		buf.budget, buf.held = nil, 0
	}
}

// countedBody is the length from which net/http sends a body in chunks, unless Content-Length
// is set. For shorter bodies net/http sets it itself, and cheaper.
const countedBody = 2048

// Header values shared by all answers; net/http only reads them.
var (
	PlainJSON   = []string{"application/json"}
	ProblemJSON = []string{"application/problem+json"}
	NoStore     = []string{"no-store"}
)

// Write answers with a whole body and returns the status. It forbids caches to keep the
// answer.
func Write(w http.ResponseWriter, status int, contentType []string, body []byte) int {
	if len(body) >= countedBody {
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	WriteHead(w, status, contentType)
	// An error means that the client is gone; there is nobody left to tell.
	_, _ = w.Write(body)
	return status
}

// WriteHead writes the head of an answer.
func WriteHead(w http.ResponseWriter, status int, contentType []string) {
	h := w.Header()
	h["Cache-Control"] = NoStore
	h["Content-Type"] = contentType
	w.WriteHeader(status)
}
