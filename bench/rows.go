package main

import "regexp"

// A row is one line of the table: who is hit, how, and what must come of it.
type row struct {
	name    string
	short   bool // also in the gate's form
	set     string
	load    load
	conns   int    // of the load maker; 0: 256
	nodes   int    // of quotad on one database; 0: 1
	want    want   // of quotad's answers
	shell   string // what answers instead of quotad: a backend of the shell
	latency bool   // also by open loop
}

// load says what requests are made of.
type load struct {
	pick    pick // how the customer is chosen
	ids     bool // each request has an id of its own
	values  int  // of an attribute of the set's first customer; they are what is chosen
	batch   int  // hits of a request; 0: one hit, not as a batch
	spread  bool // a batch's hits are on customers drawn at random, not on the first
	reserve bool // reservations, each committed by a second request
}

type pick int

const (
	first   pick = iota // the set's first customer, always
	uniform             // any of the set
	zipf                // the k-th most often of all with a share of k^-1.1
)

// want is what quotad's answers must be, or the row is not what it says: but for a
// thousandth nothing else.
type want struct {
	status  string // of the HTTP answers
	outcome string // of the hits, in quotad's metrics; empty: not looked at
}

var (
	admitted   = want{"200", "allowed"}
	fromMemory = want{"429", "refused_from_memory"}
	refused    = want{"429", "refused"}
	reserved   = want{"201 200", ""}
)

const manyConns, fewConns = 256, 64

// Batches are few at once: a node works on 64, and what is more is told to come back.
const batchConns = 32

// allRows are the rows of the table, in its order: those that fill the disk come last.
var allRows = []row{
	{name: mainRow, short: true, set: "two", load: load{pick: uniform}, want: admitted, latency: true},
	{name: "admitted, 2 limits, 64 connections", short: true, set: "two", load: load{pick: uniform}, conns: fewConns, want: admitted},
	{name: "admitted, 1 limit", set: "one", load: load{pick: uniform}, want: admitted},
	{name: "admitted, 4 limits", set: "four", load: load{pick: uniform}, want: admitted},
	{name: "admitted, 2 limits, Zipf 1.1", set: "two", load: load{pick: zipf}, want: admitted},
	{name: "one hot customer", short: true, set: "hot", want: admitted},

	{name: "refused from cache, one customer", short: true, set: "full1", want: fromMemory},
	{name: "refused from cache, 10,000 customers", set: "full", load: load{pick: uniform}, want: fromMemory},
	{name: "refused by the database (with ids)", set: "full", load: load{pick: uniform, ids: true}, want: refused},

	{name: "with ids", short: true, set: "two", load: load{pick: uniform, ids: true}, want: admitted, latency: true},
	{name: "with ids, 64 connections", set: "two", load: load{pick: uniform, ids: true}, conns: fewConns, want: admitted},
	{name: "reservation and commit", set: "reserve", load: load{pick: uniform, reserve: true}, want: reserved},
	{name: "per: 1,000 values of one hot customer", set: "per", load: load{pick: uniform, values: 1000}, want: admitted},
	{name: "batch of 100 over one customer", short: true, set: "hot", load: load{batch: 100}, conns: batchConns, want: admitted},
	{name: "batch of 100 over 100 customers", short: true, set: "two", load: load{batch: 100, spread: true}, conns: batchConns, want: admitted},

	{name: "fixed_window, by the clock", set: "fixed", load: load{pick: uniform}, want: admitted},
	{name: "fixed_window, first_hit", set: "first", load: load{pick: uniform}, want: admitted},
	{name: "fixed_window, calendar_month", set: "month", load: load{pick: uniform}, want: admitted},
	{name: "fixed_window, billing_period", set: "period", load: load{pick: uniform}, want: admitted},
	{name: "sliding_window", set: "sliding", load: load{pick: uniform}, want: admitted},
	{name: "sliding_log, exact, 10 s", set: "log", load: load{pick: uniform}, want: admitted},
	{name: "token_bucket", set: "bucket", load: load{pick: uniform}, want: admitted},
	{name: "allocation", set: "allocation", load: load{pick: uniform}, want: admitted},

	{name: "2 nodes on the same cores", set: "two", load: load{pick: uniform}, nodes: 2, want: admitted},
	{name: "4 nodes on the same cores", set: "two", load: load{pick: uniform}, nodes: 4, want: admitted},

	{name: "contrast: one UPDATE per hit", set: "two", load: load{pick: uniform}, shell: backendUpdate},
	{name: "contrast: Redis INCR", set: "two", load: load{pick: uniform}, shell: backendIncr},
	{name: "contrast: Redis token bucket in Lua", set: "two", load: load{pick: uniform}, shell: backendBucket},
	{name: "contrast: Redis INCR, fsync always", set: "two", load: load{pick: uniform}, shell: backendIncrDurable},
	{name: "contrast: Redis token bucket in Lua, fsync always", set: "two", load: load{pick: uniform}, shell: backendBucketDurable},

	{name: millionRow, set: "million", load: load{pick: uniform}, want: admitted},
	{name: "admitted, 2 limits, Zipf 1.1, 1,000,000 customers", set: "million", load: load{pick: zipf}, want: admitted},
}

// mainRow is the one that most of what there is to reach is about.
const (
	mainRow    = "admitted, 2 limits"
	millionRow = "admitted, 2 limits, 1,000,000 customers"
)

func mainRowOf() *row {
	for i := range allRows {
		if allRows[i].name == mainRow {
			return &allRows[i]
		}
	}
	panic("there is no row " + mainRow)
}

func (r *row) connections() int {
	if r.conns == 0 {
		return manyConns
	}
	return r.conns
}

func (r *row) nodeCount() int { return max(r.nodes, 1) }

// hits is how many hits a request has.
func (r *row) hits() int { return max(r.load.batch, 1) }

// redis tells whether redis-server answers for the row.
func (r *row) redis() bool { return r.shell != "" && r.shell != backendUpdate }

// chosen are the rows to measure.
func chosen(o *options) (rows []*row) {
	for i := range allRows {
		r := &allRows[i]
		if (!o.short || r.short) && matches(o.rows, r.name) {
			rows = append(rows, r)
		}
	}
	return rows
}

func matches(re *regexp.Regexp, name string) bool { return re == nil || re.MatchString(name) }
