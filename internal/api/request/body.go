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

// The largest bodies, in bytes.
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

// ReadBody reads the request's body into buf.B, up to limit bytes, after checking that it
// claims to be JSON. The buffer grows by what has come, and not by what was promised: a
// client that promises much and sends little takes little.
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
		// One byte too many is enough to know: for more, a chunked body would be waited for.
		n, err := r.Body.Read(buf.B[have:min(buf.Room(), limit+1)])
		buf.B = buf.B[:have+n]
		switch {
		case have+n > limit:
			return tooLarge
		case err == io.EOF:
			_ = r.Body.Close() // or net/http would look for more of it before it answers
			return nil
		case err != nil:
			return WhyCut(err)
		}
	}
}

// nextSize is the size of the buffer for a body of which have bytes have come: four times as
// many, as each step leaves the one before to the garbage collector. It is no more than a body
// of the promised length needs, or one of limit bytes, and one byte to see its end. A promise
// of 0 or less may be none.
func nextSize(have, promised, limit int) int {
	size := min(max(4*have, respond.Free), limit+1)
	if promised >= have {
		size = min(size, max(promised, respond.Free)+1)
	}
	return max(size, have+1)
}

var errUnread = problem.Invalid("", "this request takes no body, and nothing was done: leave the body out, or send {}")

// NoBody makes sure that a request says nothing in a body where nobody reads it, such as a part
// that is to be paid. {} and null say nothing.
func NoBody(r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	const most = 64 // whatever is longer says something
	body, err := io.ReadAll(io.LimitReader(r.Body, most))
	if err != nil {
		return WhyCut(err)
	}
	if said := string(bytes.TrimSpace(body)); len(body) == most || said != "" && said != "{}" && said != "null" {
		return errUnread
	}
	return nil
}

// SkipBody reads the rest of a body that was refused for want of memory, and keeps none of
// it: a client that is still sending would not see the answer. It reports whether the body
// has ended by then, by the node's own clock.
func SkipBody(w http.ResponseWriter, r *http.Request, until time.Time) bool {
	// An error says that there is no connection behind it, and so nothing to wait for.
	_ = http.NewResponseController(w).SetReadDeadline(until)
	scratch := make([]byte, respond.Free/4) // io.Discard has 8 KiB for each
	for skipped := 0; skipped <= MaxBatchBody; {
		n, err := r.Body.Read(scratch)
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		skipped += n
	}
	return false
}

// WhyCut is what a body that could not be read is to its client.
func WhyCut(err error) *problem.Fault {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errTooSlow
	}
	return errCutShort
}

// checkMediaType wants application/json.
func checkMediaType(h http.Header) error { return CheckMedia(h, errMediaType, "application/json") }

// CheckMedia wants one of these media types, else it is wrong, in UTF-8 where a charset is
// named and in no encoding.
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
