package serve

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"

	"quotad/internal/api/problem"
)

// Recovered is a handler that answers 500 where next panics, and logs why. Routes of the API and
// pages do that themselves; this is for all else that a listener serves.
func Recovered(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				panicked(w, r, log, p)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// panicked turns a panic into a 500, and logs it. Of an answer that has begun the connection is
// dropped, by net/http's own way to do so: more of it would read as if it were whole.
func panicked(w http.ResponseWriter, r *http.Request, log *slog.Logger, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	log.Error("panic while answering", "request_id", RequestID(w), "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	if _, begun := w.Header()["Content-Type"]; begun {
		panic(http.ErrAbortHandler)
	}
	problem.Write(w, problem.Broken)
}
