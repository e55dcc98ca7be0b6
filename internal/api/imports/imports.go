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
	// MaxOpen is how many imports may be open at once on a node. One that waits for its client
	// takes importMemory, and no more.
	MaxOpen = 64
	// MaxOwn is how many of these are one key's, so that others find a place.
	MaxOwn = MaxOpen / 2
	// MaxGroups is how many groups of lines a node does at once, of all imports.
	MaxGroups = 4
	// importMemory is what an import holds of the memory for bodies, in bytes: its reader's, and
	// as much for lines that were taken apart.
	importMemory = 4 * MaxLine
	// MaxOutages is how many groups in a row may meet an outage, so that no line is done,
	// before an import stops.
	MaxOutages = 3
	// DefaultWait bounds each wait of an import: for the lines of a group, for the database,
	// and for the client to take the answer.
	DefaultWait = 30 * time.Second
	// defaultPause is the pause after a group that met an outage. It is as long as Retry-After
	// says.
	defaultPause = time.Second
	// importEnd is how long the connection is still read after the answer, for what the client
	// sends.
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

// An importing is an import under way.
type importing struct {
	server   *Room
	key      queue.SenderID
	from     quota.Sender
	w        http.ResponseWriter
	r        *http.Request
	control  *http.ResponseController
	body     *lineReader
	answer   []byte // not sent yet
	begun    bool   // the head of the answer has been sent
	audited  bool   // that it began
	listed   bool   // the answer lists an error already
	outages  int    // groups in a row that met an outage
	outcomes client.Import
}

// importLines serves POST /v1/imports.
func (s *Room) importLines(w http.ResponseWriter, r *http.Request, p serve.Params) int {
	if r.ProtoMajor == 1 {
		// The import may end within the body. The rest of the body must not be read as the
		// connection's next request.
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

// run does all lines and answers. It ends at once when the answer cannot be sent, for then the
// client is gone.
func (im *importing) run() {
	// Without full duplex net/http reads the whole body before it sends the first byte of an
	// answer. An error means that the connection is full duplex anyway, or is not one of
	// net/http's.
	_ = im.control.EnableFullDuplex()
	im.answer = append(im.answer[:0], `{"errors":[`...)
	var items []item
	var end error
	for end == nil {
		im.allow(im.server.Wait)
		clear(items)
		items, end = im.body.group(items[:0])
		im.allow(2 * im.server.Wait) // for the database, and then for the answer
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

// allow sets the deadlines for reading the body and writing the answer to d from now. If the
// connection is gone, the next read or write says so.
func (im *importing) allow(d time.Duration) {
	at := im.server.Wall().Add(d)
	_ = im.control.SetReadDeadline(at)
	_ = im.control.SetWriteDeadline(at)
}

// mayGoOn returns why the import has to stop, or nil. After an outage it pauses before it
// returns nil.
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

// report counts the outcomes of the lines, and adds their errors to the answer.
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

// send sends the part of the answer that is ready, or at least white space, which shows that
// the import goes on. It reports whether the client takes it.
func (im *importing) send() bool {
	space := byte('\n')
	if len(im.answer) == 0 {
		space = ' '
	}
	im.answer = append(im.answer, space)
	return im.write() == nil && im.control.Flush() == nil
}

// write writes the part of the answer that is ready. The first write sends the head, after the
// first lines were read: a head before that would keep net/http from sending 100 Continue.
func (im *importing) write() error {
	if !im.begun {
		im.begun = true
		respond.WriteHead(im.w, http.StatusOK, respond.PlainJSON)
	}
	_, err := im.w.Write(im.answer)
	im.answer = im.answer[:0]
	return err
}

// finish appends the end of the answer: the counts, and why the import stopped early.
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
