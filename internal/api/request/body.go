package request

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
)

// The maximum sizes of bodies, in bytes.
const (
	MaxBody      = 64 << 10
	MaxBatchBody = 1 << 20
)

var (
	errMediaType  = &problem.Fault{Kind: problem.KindMediaType, Detail: "the body must be declared as Content-Type: application/json, in UTF-8"}
	errEncoding   = &problem.Fault{Kind: problem.KindMediaType, Detail: "a Content-Encoding is not supported: send the body as it is"}
	errTooLarge   = &problem.Fault{Kind: problem.KindTooLarge, Detail: "the body has more than 64 KiB"}
	errBatchLarge = &problem.Fault{Kind: problem.KindTooLarge, Detail: "the batch has more than 1 MiB"}
	errTooSlow    = &problem.Fault{Kind: problem.KindTimeout, Detail: "the body did not arrive in time"}
	errCutShort   = &problem.Fault{Kind: problem.KindNotJSON, Detail: "the body ended before it was complete"}
)

// ReadBody reads the request's body into buf.B, up to limit bytes, if the media type is JSON. The buffer grows
// with the bytes that have arrived and not with the announced length. Therefore a client that announces much and
// sends little occupies little memory.
func ReadBody(r *http.Request, buf *respond.Buffer, memory *respond.Budget, limit int) error {
	buf.B = buf.B[:0]
	if err := checkMediaType(r.Header); err != nil {
		return err
	}
	tooLarge := errTooLarge
	if limit > MaxBody {
		tooLarge = errBatchLarge
	}
	if r.ContentLength > int64(limit) {
		return tooLarge
	}
	for {
		have := len(buf.B)
		if have == buf.Room() {
			if err := buf.Grow(memory, nextSize(have, int(r.ContentLength), limit)); err != nil {
				return err
			}
		}
		// One byte above the limit is enough to detect a body that is too long. Reading more could block on a
		// chunked body.
		n, err := r.Body.Read(buf.B[have:min(buf.Room(), limit+1)])
		buf.B = buf.B[:have+n]
		switch {
		case have+n > limit:
			return tooLarge
		case err == io.EOF:
			_ = r.Body.Close() // otherwise net/http would read on before it responds
			return nil
		case err != nil:
			return WhyCut(err)
		}
	}
}

// nextSize returns the new size of a buffer after have bytes of a body have arrived. The size is four times
// have, because each step leaves the previous buffer to the garbage collector. It is at most the announced
// length or limit, plus one byte that detects the end. An announced length of 0 or less may mean that no length
// was announced.
func nextSize(have, promised, limit int) int {
	size := min(max(4*have, respond.Free), limit+1)
	if promised >= have {
		size = min(size, max(promised, respond.Free)+1)
	}
	return max(size, have+1)
}

var errUnread = problem.Invalid("", "this request takes no body, and nothing was done: leave the body out, or send {}")

// NoBody rejects a body with content if the route reads no body, because the client may rely on the content,
// such as a partial amount of a payment. The bodies {} and null have no content.
func NoBody(r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	const most = 64 // a longer body has content
	body, err := io.ReadAll(io.LimitReader(r.Body, most))
	if err != nil {
		return WhyCut(err)
	}
	if said := string(bytes.TrimSpace(body)); len(body) == most || said != "" && said != "{}" && said != "null" {
		return errUnread
	}
	return nil
}

// SkipBody discards the rest of a body that was rejected for lack of memory, because a client that is still
// sending would not see the response. It reports whether the body ended before until, by the node's own clock.
func SkipBody(w http.ResponseWriter, r *http.Request, until time.Time) bool {
	// An error means that there is no connection, and so nothing to wait for.
	_ = http.NewResponseController(w).SetReadDeadline(until)
	scratch := make([]byte, respond.Free/4) // io.Discard would use 8 KiB for each body
	for skipped := 0; skipped <= MaxBatchBody; {
		n, err := r.Body.Read(scratch)
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		skipped += n
	}
	return false
}

// WhyCut returns the problem to report when a request body could not be read.
func WhyCut(err error) *problem.Fault {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errTooSlow
	}
	return errCutShort
}

// checkMediaType requires application/json.
func checkMediaType(h http.Header) error { return CheckMedia(h, errMediaType, "application/json") }

// CheckMedia requires one of the named media types, in UTF-8 if a charset is specified, and without a content
// encoding. Otherwise it returns wrong.
func CheckMedia(h http.Header, wrong *problem.Fault, names ...string) error {
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
