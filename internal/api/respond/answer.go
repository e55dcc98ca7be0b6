package respond

import (
	"math"
	"net/http"
	"strconv"
	"sync"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// ResetStyle is the format of X-RateLimit-Reset.
type ResetStyle int

// The formats are whole seconds left, rounded up (the default), the Unix time of the reset in seconds, or
// milliseconds left.
const (
	ResetSeconds ResetStyle = iota
	ResetEpoch
	ResetMillis
)

// second is a second in µs, the unit of all times.
const second int64 = 1e6

// maxField is the largest integer in a structured field (RFC 9651).
const maxField int64 = 1e15 - 1

// The maximum length of RateLimit-Policy in bytes, and the maximum number of its limits. RateLimit is about as
// long. Many clients and proxies accept at most 8 KiB of headers.
const (
	maxListed       = 3500
	maxLimitsListed = 20
)

// QuotaHeaders sets the quota headers of a decision whose views are in the buffer. The headers are
// RateLimit-Policy and RateLimit (IETF draft 10), X-RateLimit-*, and Retry-After for a refusal. at is the time
// of the customer's clock, see Decision.Now. wait is the decision's retry-after, µs or Never.
//
// X-RateLimit-* describe one limit, which before chooses. No header names a shadow limit. RateLimit-Policy and
// RateLimit name the first limits, as many as maxListed and maxLimitsListed allow.
//
// Every hit pays for these headers, so buf.policy keeps the values that depend only on the limits.
func (buf *Buffer) QuotaHeaders(h http.Header, style ResetStyle, at, wait int64) {
	views := buf.Views
	if len(views) == 0 {
		return
	}
	if !buf.policy.of(views) {
		buf.policy = newPolicy(views)
	}
	told := -1 // index of the limit that X-RateLimit-* describe
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

// before reports whether X-RateLimit-* describe view a rather than view b, which comes earlier in the plan. For
// a refusal they describe the hard limit with the longest wait, otherwise the limit with the least remaining.
// Among equal limits, the limit with the latest reset is chosen.
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

// waitOf returns the time for which a hard limit refuses, in µs. Never is the longest time. It returns 0 for a
// limit that does not refuse.
func waitOf(v *model.View) int64 {
	switch {
	case v.Limit.Mode != model.Hard:
		return 0
	case v.RetryAfter == model.Never:
		return math.MaxInt64
	}
	return v.RetryAfter
}

// policy contains the header values that depend only on the limits, and not on their remaining quota. It never
// changes, so responses share it.
type policy struct {
	limits   []*model.Limit
	listed   int      // number of named limits, counted from the first, without shadow limits
	text     []string // RateLimit-Policy
	capacity []string // X-RateLimit-Limit of each limit
}

// of reports whether the policy belongs to the limits of these views.
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

// appendPolicy appends a limit's policy, such as "hourly";q=5000;w=3600. Names need no escaping, because Compile
// admits only letters, digits and . _ : -.
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

// appendState appends a limit's state, such as "hourly";r=4999;t=3600. It omits t if the whole quota never
// replenishes by itself.
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

// windowSeconds returns the parameter w, which is the window if the window is whole seconds. For a token bucket
// it is the time in which the bucket fills. There is no w for an allocation, a calendar window, or a bucket that
// never fills.
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

// Buffer is the memory that one response needs besides its own strings. A pool keeps it for later responses.
type Buffer struct {
	B      []byte
	Views  []model.View
	policy *policy // policy of the previous response's limits
	Last   Subject // subject of the previous hit, whose strings the next hit may share

	From   queue.SenderID // sender whose share of the budget is used; set before the first Hold
	budget *Budget
	held   int64 // bytes reserved in the budget
}

// maxBufferKept is the maximum size in bytes of a buffer that the pool keeps. Larger buffers, which large
// batches cause, are left to the garbage collector.
const maxBufferKept = 64 << 10

var buffers = sync.Pool{New: func() any { return &Buffer{B: make([]byte, 0, Free), Views: make([]model.View, 0, 8)} }}

// GetBuffer returns an empty buffer, which belongs to the caller until PutBuffer.
func GetBuffer() *Buffer { return buffers.Get().(*Buffer) }

// BufferFor returns an empty buffer for a request of a sender; see GetBuffer.
func BufferFor(from queue.SenderID) *Buffer {
	buf := GetBuffer()
	buf.From = from
	return buf
}

// PutBuffer returns a buffer to the pool. Afterwards, the buffer and its contents must not be used.
func PutBuffer(buf *Buffer) {
	buf.Release()
	buf.From = ""
	if cap(buf.B) > maxBufferKept {
		return
	}
	clear(buf.Views) // otherwise the pool would keep the limits of old plans alive
	buf.B, buf.Views = buf.B[:0], buf.Views[:0]
	buffers.Put(buf)
}

// Room returns the number of bytes that B may have now.
func (buf *Buffer) Room() int { return min(cap(buf.B), Free+int(buf.held)) }

// Grow increases the capacity of B to size bytes. Errors: those of Hold.
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

// Hold reserves bytes in the budget until Release, so that size bytes are reserved in all. A buffer must use the
// same budget each time. Errors: ErrMemory, ErrMemoryShare.
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

// Release returns all reserved bytes to the budget.
func (buf *Buffer) Release() {
	if buf.held > 0 {
		buf.budget.shares.Give(buf.From, buf.held)
		buf.budget, buf.held = nil, 0
	}
}

// countedBody is the length from which net/http sends a body in chunks unless Content-Length is set. For shorter
// bodies, net/http sets the header itself with less work.
const countedBody = 2048

// Header values that all responses share, because net/http only reads them.
var (
	PlainJSON   = []string{"application/json"}
	ProblemJSON = []string{"application/problem+json"}
	NoStore     = []string{"no-store"}
)

// Write writes a response with a complete body and returns the status. The response must not be cached.
func Write(w http.ResponseWriter, status int, contentType []string, body []byte) int {
	if len(body) >= countedBody {
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	WriteHead(w, status, contentType)
	// An error means that the client is gone, so nobody can receive a report.
	_, _ = w.Write(body)
	return status
}

// WriteHead writes the header of a response.
func WriteHead(w http.ResponseWriter, status int, contentType []string) {
	h := w.Header()
	h["Cache-Control"] = NoStore
	h["Content-Type"] = contentType
	w.WriteHeader(status)
}
