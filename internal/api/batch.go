package api

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"quotad/internal/quota"
)

// maxHits is how many hits a batch may have.
const maxHits = 1000

// batchRequest is the body of POST /v1/hits/batch. Its hits are decoded one by one, so
// that what is wrong with one is that one's problem.
type batchRequest struct {
	Hits   []jsontext.Value `json:"hits"`
	Atomic jsontext.Value   `json:"atomic"`
}

// batchBody describes batchRequest to clients.
type batchBody struct {
	Hits   []hitRequest `json:"hits" maxItems:"1000" doc:"The hits, decided in this order."`
	Atomic bool         `json:"atomic,omitempty" default:"false" doc:"All or nothing. Not supported yet: must be false."`
}

// hitsBatch serves POST /v1/hits/batch.
func (s *Server) hitsBatch(w http.ResponseWriter, r *http.Request, _ query) int {
	buf := getBuffer()
	defer putBuffer(buf)
	err := refuseIdempotencyKey(r.Header)
	var in batchRequest
	if err == nil {
		if buf.b, err = readBody(r, buf.b[:0], maxBatchBody); err == nil {
			in, err = decodeBatch(buf.b)
		}
	}
	if err != nil {
		return s.fail(w, r, err)
	}
	hits, results := make([]hit, len(in.Hits)), make([]quota.Result, len(in.Hits))
	for i := range in.Hits {
		hits[i], results[i].Err = decodeHit(in.Hits[i])
	}
	ctx := &deadline{request: r.Context(), after: s.options.Deadline}
	s.decideAll(ctx, hits, results)
	ctx.end()
	// The request has been taken apart: its buffer can hold the answer.
	buf.b = append(buf.b[:0], `{"results":[`...)
	for i := range hits {
		if i > 0 {
			buf.b = append(buf.b, ',')
		}
		s.appendResult(r, buf, &hits[i], &results[i])
	}
	buf.b = append(buf.b, "]}"...)
	return writeBody(w, http.StatusOK, plainJSON, buf.b)
}

func decodeBatch(body []byte) (in batchRequest, err error) {
	if err := decodeLoosely(body, &in); err != nil {
		return in, err
	}
	switch {
	case in.Atomic.Kind() == 't':
		return in, invalid("atomic", "is not supported yet: leave it out, or send false")
	case in.Atomic != nil && in.Atomic.Kind() != 'f':
		return in, invalid("atomic", "must be true or false")
	case in.Hits == nil:
		return in, invalid("hits", "is required")
	case len(in.Hits) > maxHits:
		return in, invalid("hits", "must not have more than 1000 hits")
	}
	return in, nil
}

// appendResult appends one result: a decision, or a problem with its status.
func (s *Server) appendResult(r *http.Request, buf *buffer, h *hit, result *quota.Result) {
	if err := result.Err; err != nil {
		s.metrics.failed(err)
		f := problemOf(err)
		s.logInternal(r, f, err)
		buf.b = appendProblem(buf.b, f)
		return
	}
	d := &result.Decision
	s.metrics.count(h, d)
	buf.views = appendViews(buf.views[:0], d)
	wait := int64(0)
	if !d.Allowed {
		wait = d.RetryAfter()
	}
	buf.b = appendDecision(buf.b, h, d, buf.views, wait, http.StatusTooManyRequests)
}
