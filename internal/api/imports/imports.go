package imports

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/quota"
	"quotad/internal/quota/queue"
)

const (
	// MaxOpen is the maximum number of open imports on a node. An import that waits for its client occupies at
	// most importMemory.
	MaxOpen = 64
	// MaxOwn is the maximum number of open imports of one key, so that other keys find a place.
	MaxOwn = MaxOpen / 2
	// MaxGroups is the maximum number of groups of lines that a node processes at once, for all imports
	// together.
	MaxGroups = 4
	// importMemory is an import's part of the memory for bodies, in bytes. It covers the reader's buffer and an
	// equal amount for parsed lines.
	importMemory = 4 * MaxLine
	// MaxOutages is the number of consecutive groups that an outage prevents completely before an import stops.
	MaxOutages = 3
	// DefaultWait limits each wait of an import: for the lines of a group, for the database, and for the client
	// to accept the response.
	DefaultWait = 30 * time.Second
	// defaultPause is the pause after a group that an outage prevented. It equals the value of Retry-After.
	defaultPause = time.Second
	// importEnd is the time after the response for which the server still reads the client's data from the
	// connection.
	importEnd = time.Second
)

// Routes are those of the room. A nil Room describes them.
func (s *Room) Routes() []serve.Route {
	return []serve.Route{{Operation: apidoc.Operation{
		Method: "POST", Pattern: "/v1/imports", Access: apidoc.AdminOnly, Tag: "Customers", ID: "imports.create", Summary: "Import what was used elsewhere",
		Request: reflect.TypeFor[client.ImportLine](), RequestMedia: "application/x-ndjson", Response: reflect.TypeFor[client.Import](), Status: serve.OK200,
	}, Raw: s.importLines}}
}

var (
	errManyImports = &problem.Fault{Kind: problem.KindBusy, Detail: "this node has 64 imports open already; nothing was done"}
	errOwnImports  = &problem.Fault{
		Kind:   problem.KindBusy,
		Detail: "this node has 32 imports of this API key open already, the most for one key; nothing was done",
	}
	errManyOutages = &problem.Fault{Kind: problem.KindUnavailable, Detail: "no line of the last three groups could be done for now"}
	errNodeStops   = &problem.Fault{Kind: problem.KindStopping, Detail: "this node is stopping"}
)

// importing is an import in progress.
type importing struct {
	server   *Room
	key      queue.SenderID
	from     quota.Sender
	w        http.ResponseWriter
	r        *http.Request
	control  *http.ResponseController
	body     *lineReader
	answer   []byte // the part that is not sent yet
	begun    bool   // the header of the response was sent
	audited  bool   // the start was recorded in the audit trail
	listed   bool   // the response already contains an error
	outages  int    // consecutive groups that an outage prevented
	outcomes client.Import
}

// importLines serves POST /v1/imports.
func (s *Room) importLines(w http.ResponseWriter, r *http.Request, p serve.Params) int {
	if r.ProtoMajor == 1 {
		// The import may end within the body. The rest of the body must not be parsed as the connection's next
		// request.
		w.Header().Set("Connection", "close")
	}
	if err := checkImport(r); err != nil {
		return s.Fail(w, r, err)
	}
	if err := s.Open.Take(p.From); err != nil {
		return s.Fail(w, r, err)
	}
	defer s.Open.GiveBack(p.From)
	buf := respond.BufferFor(p.From)
	defer respond.PutBuffer(buf)
	if err := buf.Hold(s.Memory, importMemory); err != nil {
		return s.Fail(w, r, err)
	}
	im := importing{
		server: s, key: p.From, from: s.Engine.From(p.From), w: w, r: r, control: http.NewResponseController(w), body: newLineReader(r.Body),
		answer: buf.B,
	}
	im.run()
	buf.B = im.answer
	im.auditEnd()
	return http.StatusOK
}

// run processes all lines and writes the response. It ends at once if the response cannot be sent, because then
// the client is gone.
func (im *importing) run() {
	// Without full duplex, net/http reads the whole body before it sends the first byte of a response. An error
	// means that the connection is full duplex anyway, or does not belong to net/http.
	_ = im.control.EnableFullDuplex()
	im.answer = append(im.answer[:0], `{"errors":[`...)
	var items []item
	var end error
	for end == nil {
		im.allow(im.server.Wait)
		clear(items)
		items, end = im.body.group(items[:0])
		im.allow(2 * im.server.Wait) // for the database and then for the response
		im.do(items)
		im.report(items)
		if !im.send() {
			return
		}
		if end == nil {
			end = im.mayGoOn()
		}
	}
	im.finish(end)
	if im.send() {
		_ = im.control.SetReadDeadline(im.server.Wall().Add(importEnd))
	}
}

// allow sets the deadlines for reading the body and writing the response to d from now. If the connection is
// gone, the next read or write fails.
func (im *importing) allow(d time.Duration) {
	at := im.server.Wall().Add(d)
	_ = im.control.SetReadDeadline(at)
	_ = im.control.SetWriteDeadline(at)
}

// mayGoOn returns the reason for which the import must stop, or nil. After an outage it pauses before it returns
// nil.
func (im *importing) mayGoOn() error {
	if state, _ := im.server.Ready(); state == serve.StateStopping {
		return errNodeStops
	}
	if im.outages >= MaxOutages {
		return errManyOutages
	}
	if im.outages > 0 {
		select {
		case <-time.After(im.server.Pause):
		case <-im.r.Context().Done():
		}
	}
	return nil
}

// report counts the results of the lines and adds their errors to the response.
func (im *importing) report(items []item) {
	sum, counters := &im.outcomes, im.server.Metrics.Operations[serve.NameImport]
	for i := range items {
		it := &items[i]
		sum.Lines++
		switch {
		case it.err != nil:
			sum.Failed++
			counters.Failed.Inc()
			im.addError(it)
		case it.replayed:
			sum.Replayed++
			counters.Replayed.Inc()
		default:
			sum.Imported++
			counters.Done.Inc()
		}
	}
}

func (im *importing) addError(it *item) {
	f := problem.Of(serve.Explain(it.err, it.names()))
	im.server.LogInternal(im.w, im.r, f, it.err)
	if im.listed {
		im.answer = append(im.answer, ',')
	}
	im.listed = true
	im.answer = it.appendError(im.answer, f)
	if len(im.answer) >= respond.Piece {
		_ = im.write() // a failed write fails again in send
	}
}

// send sends the part of the response that is ready, or at least white space as a sign of life. It reports
// whether the client accepts the data.
func (im *importing) send() bool {
	space := byte('\n')
	if len(im.answer) == 0 {
		space = ' '
	}
	im.answer = append(im.answer, space)
	return im.write() == nil && im.control.Flush() == nil
}

// write writes the part of the response that is ready. The first write also sends the header, and happens after
// the first lines were read. An earlier header would prevent net/http from sending 100 Continue.
func (im *importing) write() error {
	if !im.begun {
		im.begun = true
		respond.WriteHead(im.w, http.StatusOK, respond.PlainJSON)
	}
	_, err := im.w.Write(im.answer)
	im.answer = im.answer[:0]
	return err
}

// finish appends the end of the response: the counts, and the reason if the import stopped early.
func (im *importing) finish(end error) {
	sum := &im.outcomes
	for _, n := range []struct {
		name  string
		count int64
	}{{`],"lines":`, sum.Lines}, {`,"imported":`, sum.Imported}, {`,"replayed":`, sum.Replayed}, {`,"failed":`, sum.Failed}} {
		im.answer = strconv.AppendInt(append(im.answer, n.name...), n.count, 10)
	}
	if !errors.Is(end, io.EOF) {
		im.answer = append(im.answer, `,"stopped":`...)
		im.answer = respond.AppendString(im.answer, problem.Of(end).Detail+". What follows was not done: send all of it again, of which nothing is done twice")
	}
	im.answer = append(im.answer, '}')
}
