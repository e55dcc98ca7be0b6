package api

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"time"

	"quotad/internal/api/apidoc"
	"quotad/internal/quota/model"
)

const (
	// overviewEvery is how long an overview is shown before it is read anew.
	overviewEvery = 2 * time.Second
	// fullestRest is how long the fullest customers are shown at least. It is also twenty times what
	// it took to find them, where that is longer: so a session is busy with it for a twentieth.
	fullestRest = 10 * time.Second
)

// The parts of an overview that can be missing.
const (
	partDecisions = "decisions"
	partNodes     = "nodes"
	partDatabase  = "database"
	partFullest   = "fullest"
	partHeld      = "held"
)

type overviewBody struct {
	At        time.Time      `json:"at" doc:"When this was read. A node reads it at most every 2 seconds."`
	Concerns  []concernBody  `json:"concerns" doc:"What somebody should look at."`
	Failed    []string       `json:"failed" enum:"decisions,nodes,database,fullest,held" doc:"Parts that could not be read just now. They are left out."`
	Decisions *decisionsBody `json:"decisions,omitempty"`
	Nodes     []nodeBody     `json:"nodes,omitzero" doc:"The nodes that serve on this database. One that is killed stays for an hour, as silent."`
	Fullest   *fullestBody   `json:"fullest,omitempty"`
	Database  *databaseBody  `json:"database,omitempty"`
	Books     booksBody      `json:"books"`
}

type concernBody struct {
	Name string `json:"name" enum:"node_silent,node_degraded,database_read_only,connections,old_transaction,books_disagree,billing_blocked,seller_without_name" doc:"Never changes, so clients may branch on it."`
	Text string `json:"text" doc:"What it is, for people."`
}

type decisionsBody struct {
	PerSecond string      `json:"per_second" doc:"What all nodes together decided a second, on average of recent: a decimal number."`
	Seconds   int64       `json:"seconds" doc:"How long recent is: one to two minutes."`
	Recent    decidedBody `json:"recent"`
	Hour      decidedBody `json:"hour" doc:"The last hour, from the start of a minute on."`
	Day       decidedBody `json:"day" doc:"The last 24 hours, from the start of a minute on."`
}

type decidedBody struct {
	From     time.Time `json:"from"`
	Admitted int64     `json:"admitted" doc:"Hits and reservations."`
	Refused  int64     `json:"refused" doc:"Hits and reservations."`
}

type nodeBody struct {
	Name      string    `json:"name" doc:"The machine and the port."`
	Version   string    `json:"version"`
	State     string    `json:"state" enum:"starting,ready,degraded,stopping,silent" doc:"silent: it was not heard of for 15 seconds."`
	Reason    string    `json:"reason,omitempty" doc:"Why the node is degraded."`
	StartedAt time.Time `json:"started_at"`
	SeenAt    time.Time `json:"seen_at" doc:"Nodes tell of themselves every 5 seconds."`
	PerSecond string    `json:"per_second" doc:"What it decided a second: a decimal number."`
}

type fullestBody struct {
	AsOf     time.Time  `json:"as_of"`
	Counters int64      `json:"counters" doc:"Counters that were looked at: one for each customer and meter."`
	Judged   int        `json:"judged" doc:"Of these, how many were judged: those that were charged last, at most 5,000."`
	Complete bool       `json:"complete" doc:"All counters were looked at, and judged."`
	Items    []fullBody `json:"items" maxItems:"10" doc:"The fullest limit of each customer, the fullest first."`
}

type fullBody struct {
	Customer string `json:"customer"`
	Name     string `json:"name" doc:"The customer's."`
	Meter    string `json:"meter"`
	Limit    string `json:"limit" doc:"The limit's name."`
	Mode     string `json:"mode" enum:"hard,soft" doc:"soft: it admits past itself."`
	Used     int64  `json:"used"`
	Of       int64  `json:"of" doc:"The limit, or the burst of a token bucket."`
	Percent  int64  `json:"percent" doc:"Used in percent, rounded down. Above 100 where a soft limit is exceeded."`
}

type databaseBody struct {
	Version             string     `json:"version" doc:"PostgreSQL's."`
	SizeBytes           int64      `json:"size_bytes" doc:"Of the database on disk."`
	Connections         int        `json:"connections" doc:"Of clients, to all databases of the server."`
	MaxConnections      int        `json:"max_connections"`
	ReadOnly            bool       `json:"read_only" doc:"The server is in recovery and takes no writes."`
	Replicas            int        `json:"replicas"`
	ReplicaLagBytes     *int64     `json:"replica_lag_bytes" doc:"How many bytes of WAL the slowest replica has not replayed. Null without one, or where the role may not see it."`
	OldestTransactionAt *time.Time `json:"oldest_transaction_at" doc:"When the oldest open transaction began, as far as the role may see. Null: none is open."`
}

type booksBody struct {
	CheckedAt        *time.Time `json:"checked_at" doc:"When one of the nodes was last asked GET /v1/reconcile. Null: not since they started."`
	Disagreeing      []string   `json:"disagreeing" doc:"The checks that found a row then."`
	BlockedCustomers int64      `json:"blocked_customers" doc:"Customers whose billing period cannot be closed, or whose invoice cannot be finalized."`
}

func overviewRoute() route {
	return route{Operation: apidoc.Operation{
		Method: "GET", Pattern: "/v1/overview", Access: apidoc.Readers, Tag: "Service", ID: "overview", Summary: "How the service is",
		Response: reflect.TypeFor[overviewBody](), Status: ok200,
	}, handle: (*Server).overview}
}

// overviews keeps the overview that was read last. Who asks while it is read waits for it.
type overviews struct {
	every, rest time.Duration // overviewEvery and fullestRest; tests set others

	mu           sync.Mutex
	last         overviewBody
	until        time.Time // when last is read anew, by the node's own clock
	fullest      *fullestBody
	fullestErr   error
	fullestUntil time.Time
	fullestKeys  []model.CounterKey // the fullest counters of the last search
}

// overview serves GET /v1/overview. Reading is bounded below the deadline of a request, and goes on
// when the request is given up: others wait for it.
func (s *Server) overview(c *call) (answer, error) {
	o := &s.overviews
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.options.Wall().After(o.until) {
		last, err := s.readOverview(context.WithoutCancel(c.ctx()))
		if err != nil {
			return answer{}, err
		}
		o.last, o.until = last, s.options.Wall().Add(o.every)
	}
	return answer{status: http.StatusOK, body: o.last}, nil
}
