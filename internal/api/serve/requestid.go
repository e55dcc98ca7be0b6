package serve

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"sync/atomic"
)

// requestIDHeader is the header with a request's id, for logs and the audit trail.
const requestIDHeader = "X-Request-Id"

// maxRequestID is the maximum length in bytes of a client's request id that is accepted.
const maxRequestID = 200

// Identify sets the response header X-Request-Id. It uses the request's own id if the id is 1 to 200 characters
// of visible ASCII, and otherwise a new id. It must be called before any other handler responds.
func Identify(w http.ResponseWriter, r *http.Request) {
	id := r.Header[requestIDHeader]
	if len(id) != 1 || !validRequestID(id[0]) {
		id = madeIDs.next()
	}
	w.Header()[requestIDHeader] = id // shared with the request, because nobody changes a header's value in place
}

// IdentifyWithin is Identify for a request that a page makes within the process. The request receives the id of
// the page's request.
func IdentifyWithin(w http.ResponseWriter, r *http.Request) {
	if as, ok := r.Context().Value(identityKey{}).(Identity); ok && as.Request != "" {
		w.Header()[requestIDHeader] = []string{as.Request}
		return
	}
	Identify(w, r)
}

// RequestID returns the id of the request that w responds to, or an empty string if Identify was not called.
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

// requestIDs generates ids, which consist of a random word of this process and a number. Every hit without an id
// of its own needs one. Ids are generated in blocks, so they cost a hit no allocation.
type requestIDs struct {
	word    string
	made    atomic.Uint64
	present atomic.Pointer[requestIDBlock]
}

// requestIDBlock is a block of header values. The first taken values are in use.
type requestIDBlock struct {
	ids   [128]string
	taken atomic.Int64
}

// madeIDs generates the ids of this process.
var madeIDs = newRequestIDs()

func newRequestIDs() *requestIDs {
	const wordLength = 16 // letters with 5 random bits each
	m := &requestIDs{word: "req_" + rand.Text()[:wordLength] + "_"}
	m.present.Store(m.block())
	return m
}

// next returns the header value for one request.
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
	const longest = 13 // maximum number of digits of a 64-bit number
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
