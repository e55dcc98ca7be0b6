package serve

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"

	"quotad/internal/api/problem"
)

// Recovered returns a handler that responds with 500 if next panics, and logs the panic. Routes of the API and
// pages recover by themselves, so Recovered is for all other handlers of a listener.
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

// panicked converts a panic into a 500 and logs it. If the response has already begun, panicked drops the
// connection in the way that net/http provides, because the client could take a truncated response for a
// complete one.
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
