package client

import (
	"context"
	"time"
)

// Overview is the state of the service. Parts that could not be read are nil, and Failed names them.
type Overview struct {
	At        time.Time  `json:"at" doc:"The instant at which this was read, RFC 3339 in UTC. A node reads it at most every 2 seconds."`
	Concerns  []Concern  `json:"concerns" doc:"What somebody should look at."`
	Failed    []string   `json:"failed" enum:"decisions,nodes,database,fullest,held" doc:"Parts that could not be read just now. They are left out."`
	Decisions *Decisions `json:"decisions,omitempty" doc:"How many hits and reservations were decided. Absent if this could not be read."`
	Nodes     []Node     `json:"nodes,omitzero" doc:"The nodes that serve on this database. One that is killed stays for an hour, as silent."`
	Fullest   *Fullest   `json:"fullest,omitempty" doc:"The customers whose limits are the fullest. Absent if they could not be read."`
	Database  *Database  `json:"database,omitempty" doc:"The state of the database. Absent if the state could not be read."`
	Books     Books      `json:"books" doc:"The outcome of the last check of the books, and invoices that need attention."`
}

// Concern is a condition that needs attention.
type Concern struct {
	Name string `json:"name" enum:"node_silent,node_degraded,database_read_only,connections,old_transaction,books_disagree,billing_blocked,invoices_overdue,seller_without_name" doc:"The name of the concern. It never changes, so clients may branch on it."`
	Text string `json:"text" doc:"The concern, for people."`
}

// Decisions are the numbers of decided hits and reservations.
type Decisions struct {
	PerSecond string  `json:"per_second" doc:"What all nodes together decided a second, on average of recent: a decimal number."`
	Seconds   int64   `json:"seconds" doc:"How long recent is: one to two minutes."`
	Recent    Decided `json:"recent" doc:"The last one to two minutes, from the start of a minute on."`
	Hour      Decided `json:"hour" doc:"The last hour, from the start of a minute on."`
	Day       Decided `json:"day" doc:"The last 24 hours, from the start of a minute on."`
}

// Decided is the number of decisions since an instant.
type Decided struct {
	From     time.Time `json:"from" doc:"The start of the time that is counted, RFC 3339 in UTC. The time goes on until now."`
	Admitted int64     `json:"admitted" doc:"The number of hits and reservations that were admitted."`
	Refused  int64     `json:"refused" doc:"The number of hits and reservations that were refused."`
}

// Node is a node that serves the database's customers.
type Node struct {
	Name      string    `json:"name" doc:"The name of the node: its machine and its port."`
	Version   string    `json:"version" doc:"The version of quotad that the node runs."`
	State     string    `json:"state" enum:"starting,ready,degraded,stopping,silent" doc:"The state of the node. silent means that the node has not reported for 15 seconds."`
	Reason    string    `json:"reason,omitempty" doc:"Why the node is degraded."`
	StartedAt time.Time `json:"started_at" doc:"The instant at which the node started, RFC 3339 in UTC."`
	SeenAt    time.Time `json:"seen_at" doc:"The instant at which the node last reported, RFC 3339 in UTC. Nodes report every 5 seconds."`
	PerSecond string    `json:"per_second" doc:"The hits and reservations that the node decided per second, on average of recent: a decimal number."`
}

// Fullest lists the customers whose limits are nearest to exhaustion.
type Fullest struct {
	AsOf     time.Time `json:"as_of" doc:"The instant at which the fullest limits were found, RFC 3339 in UTC."`
	Counters int64     `json:"counters" doc:"Counters that were looked at: one for each customer and meter."`
	Judged   int       `json:"judged" doc:"Of these, how many were judged: those that were charged last, at most 5,000."`
	Complete bool      `json:"complete" doc:"All counters were looked at, and judged."`
	Items    []Full    `json:"items" maxItems:"10" doc:"The fullest limit of each customer, the fullest first."`
}

// Full is the limit of a customer that is nearest to exhaustion.
type Full struct {
	Customer string `json:"customer" doc:"The customer's key."`
	Name     string `json:"name" doc:"The customer's name."`
	Meter    string `json:"meter" doc:"The meter's key."`
	Limit    string `json:"limit" doc:"The limit's name."`
	Mode     string `json:"mode" enum:"hard,soft" doc:"The limit's mode. A soft limit admits hits past itself."`
	Used     int64  `json:"used" doc:"Units that count against the limit now. Of a token bucket, the burst less remaining."`
	Of       int64  `json:"of" doc:"The limit in units, or the burst of a token bucket."`
	Percent  int64  `json:"percent" doc:"The part of the limit that is used, in percent and rounded down. Above 100 if a soft limit is exceeded."`
}

// Database is the state of the database.
type Database struct {
	Version             string     `json:"version" doc:"The version of PostgreSQL."`
	SizeBytes           int64      `json:"size_bytes" doc:"The size of the database on disk, in bytes."`
	Connections         int        `json:"connections" doc:"The connections of clients to all databases of the server."`
	MaxConnections      int        `json:"max_connections" doc:"The most connections that the server accepts, by its setting max_connections."`
	ReadOnly            bool       `json:"read_only" doc:"True if the server is in recovery and takes no writes."`
	Replicas            int        `json:"replicas" doc:"The number of replicas that stream from the server now."`
	ReplicaLagBytes     *int64     `json:"replica_lag_bytes" doc:"How many bytes of WAL the slowest replica has not replayed. Null without one, or where the role may not see it."`
	OldestTransactionAt *time.Time `json:"oldest_transaction_at" doc:"When the oldest open transaction began, as far as the role may see. Null: none is open."`
}

// Books is the result of the last reconciliation.
type Books struct {
	CheckedAt        *time.Time `json:"checked_at" doc:"When one of the nodes was last asked GET /v1/reconcile. Null: not since they started."`
	Disagreeing      []string   `json:"disagreeing" doc:"The checks that found a row then."`
	OverdueInvoices  int64      `json:"overdue_invoices" doc:"Invoices that are overdue, those of customers on test clocks left out. It is counted up to 1,000."`
	BlockedCustomers int64      `json:"blocked_customers" doc:"Customers whose billing period cannot be closed, or whose invoice cannot be finalized."`
}

// Health reports whether a node serves requests.
type Health struct {
	Status string `json:"status" enum:"ok,ready,degraded" doc:"The state of the node. GET /livez answers ok, and GET /readyz answers ready or degraded."`
	Reason string `json:"reason,omitempty" doc:"Why the node is degraded."`
}

// Overview reads the state of the service.
func (c *Client) Overview(ctx context.Context) (Overview, error) {
	return get[Overview](ctx, c, at("overview"))
}
