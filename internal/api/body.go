package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

	"quotad/internal/api/problem"
)

// The largest bodies, in bytes.
const (
	maxBody      = 64 << 10
	maxBatchBody = 1 << 20
)

var (
	errMediaType  = &problem.Fault{Kind: problem.KindMediaType, Detail: "the body must be declared as Content-Type: application/json, in UTF-8"}
	errEncoding   = &problem.Fault{Kind: problem.KindMediaType, Detail: "a Content-Encoding is not supported: send the body as it is"}
	errTooLarge   = &problem.Fault{Kind: problem.KindTooLarge, Detail: "the body has more than 64 KiB"}
	errBatchLarge = &problem.Fault{Kind: problem.KindTooLarge, Detail: "the batch has more than 1 MiB"}
	errTooSlow    = &problem.Fault{Kind: problem.KindTimeout, Detail: "the body did not arrive in time"}
	errCutShort   = &problem.Fault{Kind: problem.KindNotJSON, Detail: "the body ended before it was complete"}
)

// readBody appends the request's body to b, up to limit bytes, after checking that it
// claims to be JSON.
func readBody(r *http.Request, b []byte, limit int) ([]byte, error) {
	if err := checkMediaType(r.Header); err != nil {
		return b, err
	}
	tooLarge := errTooLarge
	if limit > maxBody {
		tooLarge = errBatchLarge
	}
	if r.ContentLength > int64(limit) {
		return b, tooLarge
	}
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		// One byte too many is enough to know: for more, a chunked body would be waited for.
		n, err := r.Body.Read(b[len(b):min(cap(b), limit+1)])
		b = b[:len(b)+n]
		switch {
		case len(b) > limit:
			return b, tooLarge
		case err == io.EOF:
			_ = r.Body.Close() // or net/http would look for more of it before it answers
			return b, nil
		case err != nil:
			return b, whyCut(err)
		}
	}
}

// whyCut is what a body that could not be read is to its client.
func whyCut(err error) *problem.Fault {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errTooSlow
	}
	return errCutShort
}

// checkMediaType wants application/json.
func checkMediaType(h http.Header) error { return checkMedia(h, errMediaType, "application/json") }

// checkMedia wants one of these media types, else it is wrong, in UTF-8 where a charset is
// named and in no encoding.
func checkMedia(h http.Header, wrong *problem.Fault, names ...string) error {
	if len(h["Content-Encoding"]) > 0 && h.Get("Content-Encoding") != "identity" {
		return errEncoding
	}
	types := h["Content-Type"]
	if len(types) != 1 {
		return wrong
	}
	if types[0] == names[0] {
		return nil
	}
	name, params, err := mime.ParseMediaType(types[0])
	if err != nil || !slices.Contains(names, name) {
		return wrong
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return wrong
	}
	return nil
}
