package hits

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"quotad/client"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

const (
	// MaxHits is the maximum number of hits in a batch.
	MaxHits = 1000
	// MaxHitErrors is the maximum number of errors in the problem of one hit.
	MaxHitErrors = 5
)

var (
	errManyHits    = problem.Invalid("hits", "must not have more than 1000 hits")
	errManyBatches = &problem.Fault{Kind: problem.KindBusy, Detail: "this node works on too many batches already; nothing was charged"}
	errOwnBatches  = &problem.Fault{
		Kind:   problem.KindBusy,
		Detail: "this node works on 32 batches of this API key already, the most for one key; nothing was charged",
	}
)

// hitsBatch serves POST /v1/hits/batch.
func (s *Room) hitsBatch(w http.ResponseWriter, r *http.Request, p serve.Params) int {
	buf := respond.BufferFor(p.From)
	defer respond.PutBuffer(buf)
	key, err := request.IdempotencyKey(r.Header)
	if err == nil {
		err = request.ReadBody(r, buf, s.Memory, request.MaxBatchBody)
	}
	if err != nil {
		return s.Fail(w, r, err)
	}
	if err = s.Batches.Take(p.From); err != nil {
		return s.hitFailed(w, r, err)
	}
	hits, results, err := s.decideBatch(r.Context(), p.From, buf.B, key)
	if err != nil {
		s.failed(err, len(hits))
		return s.Fail(w, r, err)
	}
	defer s.Unread.begin(w)()
	return s.writeResults(w, r, p.From, buf, hits, results)
}

// decideBatch parses and decides a batch. It frees the batch's place before the response is written, so that
// slow readers occupy no place. An error concerns the whole batch; the hits are returned if they could be
// parsed.
func (s *Room) decideBatch(request context.Context, from queue.SenderID, body []byte, key string) (hits []hit, results []queue.Result, err error) {
	defer s.Batches.GiveBack(from)
	ctx := s.waits.until(request)
	defer ctx.end()
	hits, results, atomic, err := s.takeApart(ctx, from, body, key)
	if err != nil {
		return nil, nil, err
	}
	if !atomic && key != "" {
		err = s.otherBatch(ctx, hits, results)
	}
	switch {
	case err != nil:
	case atomic:
		err = serve.OutOfTime(ctx, s.decideTogether(ctx, s.Engine.From(from), hits, results))
	default:
		s.decideAll(ctx, s.Engine.From(from), hits, results)
	}
	return hits, results, err
}

// otherBatch checks whether another batch has used this batch's key for any of its customers. If the check
// fails, the hits cannot be charged either, or the engine compares each hit with the key when it charges the
// hit.
func (s *Room) otherBatch(ctx context.Context, hits []hit, results []queue.Result) error {
	var customers []int64
	for i := range hits {
		if results[i].Err != nil || hits[i].chargesNothing() {
			continue
		}
		if t, err := s.target(ctx, &hits[i], 0); err == nil {
			customers = append(customers, t.Counters[0].Key.Customer)
		}
	}
	slices.Sort(customers)
	if customers = slices.Compact(customers); len(customers) == 0 {
		return nil
	}
	if err := s.Engine.OtherBatch(ctx, customers, *hits[0].batch); errors.Is(err, locked.ErrOtherPayload) {
		return err
	}
	return nil
}

// takeApart parses the body of a batch in one of the places for work that needs a processor for long.
func (s *Room) takeApart(ctx context.Context, from queue.SenderID, body []byte, key string) (hits []hit, results []queue.Result, atomic bool, err error) {
	if err := s.Processing.Take(ctx, from); err != nil {
		return nil, nil, false, err
	}
	defer s.Processing.GiveBack()
	in, plain := plainBatch(body)
	if !plain {
		if in, err = decodeBatch(body); err != nil {
			return nil, nil, false, err
		}
	}
	hits, results = in.decode(key)
	return hits, results, in.atomic, nil
}

// decode reads the hits. The faults of a hit become its result. Hits without an id receive the batch's id, if
// there is one, and their position in the batch.
func (b *batch) decode(key string) ([]hit, []queue.Result) {
	hits := b.plain
	results := make([]queue.Result, len(hits)+len(b.hits))
	if hits == nil {
		hits = make([]hit, len(b.hits))
		like := new(respond.Subject)
		for i := range hits {
			hits[i], results[i].Err = decodeHit(b.hits[i], like)
			like = &hits[i].Subject
		}
	}
	if key == "" {
		return hits, results
	}
	id := b.id(key, hits, results)
	for i := range hits {
		h := &hits[i]
		h.batch = &id
		if h.id == "" {
			h.kind, h.id = request.OpBatch, key+"#"+strconv.Itoa(i)
		}
	}
	return hits, results
}

// id returns the batch's id from the key in its header. The payload contains all hits in their order, and
// atomic. A hit that cannot be parsed is included as text.
func (b *batch) id(key string, hits []hit, results []queue.Result) model.ID {
	payload := []string{strconv.FormatBool(b.atomic)}
	for i := range hits {
		parts := []string{"", ""}
		if h := &hits[i]; results[i].Err != nil {
			parts[1] = string(b.hits[i])
		} else {
			parts = append([]string{h.Customer, h.id, strconv.FormatBool(h.dryRun)}, h.payload()...)
		}
		payload = append(append(payload, strconv.Itoa(len(parts))), parts...)
	}
	return model.NewID(request.OpWholeBatch, key, payload...)
}

// writeResults writes the response to a batch. The request has been parsed, so its buffer can be reused. A
// response larger than respond.Piece is sent in pieces.
func (s *Room) writeResults(w http.ResponseWriter, r *http.Request, from queue.SenderID, buf *respond.Buffer, hits []hit, results []queue.Result) int {
	buf.B = append(buf.B[:0], `{"results":[`...)
	begun, out := false, respond.NewOut(r.Context(), w)
	for done := 0; done < len(hits); {
		n := 0
		if out.Err() == nil {
			n = s.appendPiece(w, r, from, buf, hits[done:], results[done:])
		}
		if n == 0 { // the client no longer reads the response
			s.abandonResults(w, r, hits[done:], results[done:])
			return http.StatusOK
		}
		if done += n; done < len(hits) {
			buf.B = append(buf.B, ',')
		}
		if len(buf.B) < respond.Piece {
			continue
		}
		if !begun {
			begun = true
			respond.WriteHead(w, http.StatusOK, respond.PlainJSON)
		}
		_, _ = out.Write(buf.B) // the next iteration sees the error
		buf.B = buf.B[:0]
	}
	buf.B = append(buf.B, "]}"...)
	if !begun {
		return respond.Write(w, http.StatusOK, respond.PlainJSON, buf.B)
	}
	_, _ = out.Write(buf.B)
	return http.StatusOK
}

// appendPiece appends results until they fill a piece, in one of the places for work that needs a processor for
// long. It returns the number of appended results, which is 0 if the request has ended.
func (s *Room) appendPiece(w http.ResponseWriter, r *http.Request, from queue.SenderID, buf *respond.Buffer, hits []hit, results []queue.Result) int {
	if s.Processing.Take(r.Context(), from) != nil {
		return 0
	}
	defer s.Processing.GiveBack()
	for i := range hits {
		if i > 0 {
			buf.B = append(buf.B, ',')
		}
		s.appendResult(w, r, buf, &hits[i], &results[i])
		results[i] = queue.Result{}
		if len(buf.B) >= respond.Piece {
			return i + 1
		}
	}
	return len(hits)
}

// abandonResults ends a response whose client no longer reads it. It only counts the remaining results. It
// closes the connection, so that the truncated response does not look complete.
func (s *Room) abandonResults(w http.ResponseWriter, r *http.Request, hits []hit, results []queue.Result) {
	for i := range hits {
		if err := results[i].Err; err != nil {
			s.failed(err, 1)
		} else {
			s.metrics.count(&hits[i], &results[i].Decision)
		}
	}
	if r.Context().Err() != nil {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
	}
}

// batch is a parsed client.Batch.
type batch struct {
	hits   []jsontext.Value
	plain  []hit // instead of hits, for a plain body; see plainBatch
	atomic bool
}

// decodeBatch parses a batch but not its hits, so that the faults of a hit (even a duplicate member) are
// reported for this hit. The hits share the body's memory. It stops at the first hit above the maximum.
func decodeBatch(body []byte) (batch, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	b, err := readBatch(d, body)
	if err == nil || errors.Is(err, errManyHits) {
		return b, err
	}
	if detail := request.NotJSON(body); detail != "" {
		return batch{}, &problem.Fault{Kind: problem.KindNotJSON, Detail: detail}
	}
	return batch{}, err
}

// readBatch is decodeBatch without the error text for a body that is not JSON.
func readBatch(d *jsontext.Decoder, body []byte) (b batch, err error) {
	if d.PeekKind() != '{' {
		return b, request.ErrWantObject
	}
	if _, err := d.ReadToken(); err != nil {
		return b, err
	}
	seen := map[string]bool{}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return b, err
		}
		name := token.String()
		switch {
		case seen[name]:
			err = problem.Invalid(name, "is there more than once")
		case name == "hits":
			b.hits, err = readHits(d, body)
		case name == "atomic":
			b.atomic, err = readAtomic(d)
		default:
			err = problem.Invalid(name, "is not known here"+request.Instead(name, request.MembersOf(reflect.TypeFor[client.Batch]())))
		}
		if err != nil {
			return b, err
		}
		seen[name] = true
	}
	if _, err := d.ReadToken(); err != nil {
		return b, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return b, errors.New("there is more after the batch")
	}
	if !seen["hits"] {
		return b, problem.Invalid("hits", "is required")
	}
	return b, nil
}

func readHits(d *jsontext.Decoder, body []byte) (hits []jsontext.Value, err error) {
	if d.PeekKind() != '[' {
		return nil, problem.Invalid("hits", "must be an array")
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != ']' {
		if len(hits) == MaxHits {
			return nil, errManyHits
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		end := d.InputOffset() // the decoder's slice is valid only until its next read
		hits = append(hits, body[end-int64(len(value)):end])
	}
	_, err = d.ReadToken()
	return hits, err
}

func readAtomic(d *jsontext.Decoder) (bool, error) {
	switch kind := d.PeekKind(); kind {
	case 't', 'f':
		return kind == 't', d.SkipValue()
	}
	return false, problem.Invalid("atomic", "must be true or false")
}

// appendResult appends one result: a decision, or a problem with its status.
func (s *Room) appendResult(w http.ResponseWriter, r *http.Request, buf *respond.Buffer, h *hit, result *queue.Result) {
	if err := result.Err; err != nil {
		s.failed(err, 1)
		f := problem.Of(serve.Explain(err, h.names()))
		s.LogInternal(w, r, f, err)
		buf.B = problem.Append(buf.B, f, MaxHitErrors)
		return
	}
	d := &result.Decision
	s.metrics.count(h, d)
	buf.Views = respond.AppendViews(buf.Views[:0], d)
	s.metrics.countExceeded(h, d, buf.Views)
	wait := int64(0)
	if !d.Allowed {
		wait = d.RetryAfter()
	}
	buf.B = respond.AppendDecision(buf.B, &h.Subject, d, buf.Views, wait, http.StatusTooManyRequests)
}

// batchResults is the response to a batch.
type batchResults struct {
	Results []batchResult `json:"results" doc:"A result for each hit, in the order of the request: a decision, a refusal, or a problem."`
}

// batchResult is a decision, a refusal or a problem.
type batchResult struct{}

// Schema implements huma.SchemaProvider.
func (batchResult) Schema(r huma.Registry) *huma.Schema {
	of := func(t reflect.Type) *huma.Schema { return r.Schema(t, true, "") }
	return &huma.Schema{AnyOf: []*huma.Schema{
		of(reflect.TypeFor[client.Decision]()), of(reflect.TypeFor[client.Refusal]()), of(reflect.TypeFor[client.Problem]()),
	}}
}

const (
	// MaxBatches is the maximum number of batches that a node processes at once, from the arrival of the body to
	// the decision. Each batch needs a multiple of its body in memory.
	MaxBatches = 64
	// MaxOwnBatches is the maximum number of batches of one key, so that other keys find a place.
	MaxOwnBatches = MaxBatches / 2
)
