package serve

import (
	"net/http"

	"quotad/internal/plans"
	"quotad/internal/quota/queue"
)

// actor returns the sender of a request that changes something, and the request's id.
func actor(w http.ResponseWriter, r *http.Request, from queue.SenderID) plans.Actor {
	if RequestID(w) == "" { // Identify was not called before this handler
		Identify(w, r)
	}
	return plans.Actor{By: string(from), Request: RequestID(w)}
}
