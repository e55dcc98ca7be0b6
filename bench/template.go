package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// A template makes the requests of a row: fixed bytes with a number in them that is
// chosen for each, and after it one that tells the request's id.
type template struct {
	head, mid, tail string
	from, count     int  // the number is from … from+count-1
	pick            pick // how it is chosen
	ids             bool // mid and tail have firstID+1, +2, … between them

	list []string // whole requests, of which one is drawn each time; then there is no more
}

// firstID is so large that numbers after it have the same width, and small enough for
// Lua, whose numbers have 14 digits.
const firstID = 1_000_000_000_000

// batchRequests is how many batches over many customers are made beforehand.
const batchRequests = 1000

// post is a whole request.
func post(path, key, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, key, len(body), body)
}

// Marks in a body stand for the numbers, and are as wide.
var (
	numberMark = strings.Repeat("N", len(strconv.Itoa(firstNumber)))
	idMark     = strings.Repeat("I", len(strconv.Itoa(firstID)))
)

// templateOf is the requests of a row; runID sets its ids apart from those of other runs,
// and always has the same width.
func templateOf(r *row, key, runID string) template {
	l, customers := r.load, sets[r.set].customers
	if l.batch > 0 {
		return template{list: batches(r, key)}
	}
	t := template{from: firstNumber, count: customers, pick: l.pick, ids: l.ids}
	path, customer, more := "/v1/hits", r.set+"-"+numberMark, ""
	switch {
	case l.reserve:
		path, more = "/v1/reservations", `,"ttl_ms":60000`
	case l.values > 0:
		t.count = l.values
		customer, more = customerKey(r.set, 0), `,"attributes":{"ip":"`+numberMark+`"}`
	}
	if l.ids {
		more += `,"id":"` + runID + "-" + idMark + `"`
	}
	request := post(path, key, `{"customer":"`+customer+`","meter":"`+meter+`"`+more+`}`)
	t.head, t.tail, _ = strings.Cut(request, numberMark)
	if l.ids {
		t.mid, t.tail, _ = strings.Cut(t.tail, idMark)
	}
	if l.pick == first {
		return template{list: []string{t.head + strconv.Itoa(firstNumber) + t.tail}}
	}
	return t
}

// batches are requests of many hits each. They are the same in every run.
func batches(r *row, key string) (list []string) {
	requests, customers := 1, 1
	if r.load.spread {
		requests, customers = batchRequests, sets[r.set].customers
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a load, no secret
	for range requests {
		var hits []string
		for range r.load.batch {
			hits = append(hits, `{"customer":"`+customerKey(r.set, random.IntN(customers))+`","meter":"`+meter+`"}`)
		}
		list = append(list, post("/v1/hits/batch", key, `{"hits":[`+strings.Join(hits, ",")+`]}`))
	}
	return list
}

// single is the row of one hit that stands for a batch when the handler is measured: of
// the same customers, as cheaply made.
func (r *row) single() *row {
	if r.load.batch == 0 {
		return r
	}
	return &row{name: r.name, set: r.set, want: r.want}
}

// append makes one request: number is the chosen one, counted from 0, and id the id's.
func (t *template) append(b []byte, number, id int) []byte {
	if len(t.list) > 0 {
		return append(b, t.list[number%len(t.list)]...)
	}
	b = append(b, t.head...)
	b = strconv.AppendInt(b, int64(t.from+number), 10)
	if t.ids {
		b = append(b, t.mid...)
		b = strconv.AppendInt(b, int64(firstID+id), 10)
	}
	return append(b, t.tail...)
}

// choices is how many numbers there are to choose from.
func (t *template) choices() int {
	if len(t.list) > 0 {
		return len(t.list)
	}
	return t.count
}

// zipfShare is the s of the law by which few customers have most of the hits.
const zipfShare = 1.1

// chooser returns what draws the numbers of a template, the same ones for the same seed.
func (t *template) chooser(seed uint64) func() int {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a load, no secret
	n := t.choices()
	if t.pick == zipf && len(t.list) == 0 {
		law := rand.NewZipf(random, zipfShare, 1, uint64(n-1))
		return func() int { return int(law.Uint64()) }
	}
	return func() int { return random.IntN(n) }
}
