package respond

import (
	"net/http"
	"strconv"
)

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
