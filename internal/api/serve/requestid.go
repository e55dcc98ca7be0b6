package serve

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"sync/atomic"
)

// requestIDHeader names a request, for logs and the audit trail.
const requestIDHeader = "X-Request-Id"

// maxRequestID is the length of the longest id of a request that is taken over, bytes.
const maxRequestID = 200

// Identify gives an answer the header X-Request-Id: the request's own, where it is 1 to 200 characters
// of visible ASCII, and else one that is made here. It comes before all else that answers.
func Identify(w http.ResponseWriter, r *http.Request) {
	id := r.Header[requestIDHeader]
	if len(id) != 1 || !validRequestID(id[0]) {
		id = madeIDs.next()
	}
	w.Header()[requestIDHeader] = id // shared with the request: nobody changes a header's value in place
}

// IdentifyWithin is Identify for a request within the process, by which a page asks: its id is the
// page's.
func IdentifyWithin(w http.ResponseWriter, r *http.Request) {
	if as, ok := r.Context().Value(identityKey{}).(Identity); ok && as.Request != "" {
		w.Header()[requestIDHeader] = []string{as.Request}
		return
	}
	Identify(w, r)
}

// RequestID is the id of the request that w answers; empty without Identify.
func RequestID(w http.ResponseWriter) string {
	if id := w.Header()[requestIDHeader]; len(id) == 1 {
		return id[0]
	}
	return ""
}

func validRequestID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= maxRequestID
}

// requestIDs makes ids: a random word of this process and a number. Each hit without an id of its
// own needs one. So they are made by the block, and cost a hit no allocation.
type requestIDs struct {
	word    string
	made    atomic.Uint64
	present atomic.Pointer[requestIDBlock]
}

// requestIDBlock is values of the header, of which taken are given away.
type requestIDBlock struct {
	ids   [128]string
	taken atomic.Int64
}

// madeIDs are those of this process.
var madeIDs = newRequestIDs()

func newRequestIDs() *requestIDs {
	const wordLength = 16 // of 5 random bits each
	m := &requestIDs{word: "req_" + rand.Text()[:wordLength] + "_"}
	m.present.Store(m.block())
	return m
}

// next is the value of the header for one request.
func (m *requestIDs) next() []string {
	for {
		b := m.present.Load()
		if at := int(b.taken.Add(1)) - 1; at < len(b.ids) {
			return b.ids[at : at+1 : at+1]
		}
		m.present.CompareAndSwap(b, m.block())
	}
}

func (m *requestIDs) block() *requestIDBlock {
	b := new(requestIDBlock)
	var ends [len(b.ids)]int
	const longest = 13 // digits of a number of 64 bits
	text := make([]byte, 0, len(b.ids)*(len(m.word)+longest))
	first := m.made.Add(uint64(len(b.ids))) - uint64(len(b.ids))
	for i := range b.ids {
		text = append(text, m.word...)
		text = strconv.AppendUint(text, first+uint64(i), 36)
		ends[i] = len(text)
	}
	all, from := string(text), 0
	for i, end := range ends {
		b.ids[i], from = all[from:end], end
	}
	return b
}
