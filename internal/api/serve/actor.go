package serve

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"

	"quotad/internal/plans"
	"quotad/internal/quota/queue"
)

// requestIDHeader names a request, for logs and the audit trail.
const requestIDHeader = "X-Request-Id"

// maxRequestID is the length of the longest id of a request that is taken over, bytes.
const maxRequestID = 200

// actor is who sends a request that changes something. The answer says the request's id: the
// client's own, or one that is made here.
func actor(w http.ResponseWriter, r *http.Request, from queue.SenderID) plans.Actor {
	id := r.Header.Get(requestIDHeader)
	if !validRequestID(id) {
		var raw [12]byte
		_, _ = rand.Read(raw[:]) // never fails; the program would have been ended
		id = "req_" + base64.RawURLEncoding.EncodeToString(raw[:])
	}
	w.Header().Set(requestIDHeader, id)
	return plans.Actor{By: string(from), Request: id}
}

func validRequestID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= maxRequestID
}
