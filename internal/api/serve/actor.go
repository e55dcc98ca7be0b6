package serve

import (
	"net/http"

	"quotad/internal/plans"
	"quotad/internal/quota/queue"
)

// actor is who sends a request that changes something, and the request's id.
func actor(w http.ResponseWriter, r *http.Request, from queue.SenderID) plans.Actor {
	if RequestID(w) == "" { // a handler that nobody put Identify before
		Identify(w, r)
	}
	return plans.Actor{By: string(from), Request: RequestID(w)}
}
