package client

import "time"

// HitRequest is the body of POST /v1/hits.
type HitRequest struct {
	Customer   string            `json:"customer" minLength:"1" maxLength:"200" pattern:"^[ -.0-~]+$" doc:"The customer's key."`
	Meter      string            `json:"meter" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The meter's key."`
	Cost       *int64            `json:"cost,omitempty" minimum:"0" maximum:"999999999999999" default:"1" doc:"Units to consume.\n- A cost of 0 only looks: the hit passes whatever is left, and charges nothing.\n- Whether a cost would pass is said by dry_run."`
	Attributes map[string]string `json:"attributes,omitempty" maxProperties:"16" doc:"Values of attributes, by the attribute's name, for limits per attribute.\n- At most 16 attributes.\n- A name has 1 to 64 letters, digits or . _ : -\n- A value has at most 200 bytes.\n- An attribute that no limit is per has no effect."`
	ID         *string           `json:"id,omitempty" minLength:"1" maxLength:"255" doc:"The idempotency key, here or as the header Idempotency-Key.\n- The hit is charged once, however often it is sent with this id.\n- The id has no effect on a hit that only looks."`
	DryRun     bool              `json:"dry_run,omitempty" default:"false" doc:"Judge the hit, and charge nothing."`
	Overrun    bool              `json:"overrun,omitempty" default:"false" doc:"The cost has been spent already, such as the tokens of an answer.\n- All of it is charged and booked, past hard limits too.\n- Such a limit says exceeded, and refuses until enough has come back.\n- An overrun is never let in uncharged: in an outage it is 503.\n- It does not go with dry_run."`
}

// LevelRequest is the body of PUT /v1/customers/{key}/levels/{meter}.
type LevelRequest struct {
	Level      *int64            `json:"level" minimum:"0" maximum:"999999999999999" doc:"What is held from now on. A rise is judged as a hit of the difference. A fall always passes."`
	Attributes map[string]string `json:"attributes,omitempty" maxProperties:"16" doc:"Where a limit of the meter is per an attribute, that attribute is required. Then the level of its value is set."`
}

// Batch is the body of POST /v1/hits/batch.
type Batch struct {
	Hits   []HitRequest `json:"hits" maxItems:"1000" doc:"The hits. Those of the same customer, meter and attributes are decided in this order."`
	Atomic bool         `json:"atomic,omitempty" default:"false" doc:"All hits are charged, or none.\n- If one hit is refused, no hit is charged. Every result has allowed false.\n- If one hit is wrong itself, its problem is the problem of the whole batch."`
}

// RefundRequest is the body of POST /v1/refunds.
type RefundRequest struct {
	Customer   string            `json:"customer" minLength:"1" maxLength:"200" pattern:"^[ -.0-~]+$" doc:"The customer's key."`
	Meter      string            `json:"meter" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The meter's key. The plan may have lost the meter."`
	Cost       int64             `json:"cost" minimum:"1" maximum:"999999999999999" doc:"Units to give back. Units beyond what was charged are not given back."`
	Hit        *string           `json:"hit,omitempty" minLength:"1" maxLength:"255" doc:"The id of the hit whose units these are.\n- The units go back to the windows that the hit was charged to, if the windows still run.\n- When left out, the units go back to the present windows."`
	Attributes map[string]string `json:"attributes,omitempty" maxProperties:"16" doc:"As of a hit: they name the buckets of limits per attribute."`
	ID         *string           `json:"id,omitempty" minLength:"1" maxLength:"255" doc:"The idempotency key, required here or as the header Idempotency-Key. The refund is done once, however often it is sent with this id."`
}

// Refund is the answer to a refund.
type Refund struct {
	Customer  string       `json:"customer" doc:"The customer's key."`
	Meter     string       `json:"meter" doc:"The meter's key."`
	Cost      int64        `json:"cost" doc:"Units to give back, as in the request."`
	Refunded  int64        `json:"refunded" doc:"Units by which usage fell.\n- With hit: no more than the hit had left of its charge.\n- Without hit: no more than the billing period had. The present windows may get more back, if an adjustment took units off."`
	At        time.Time    `json:"at" doc:"The instant of the refund by the customer's clock, RFC 3339 in UTC."`
	TestClock string       `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
	Replayed  bool         `json:"replayed" doc:"True if the refund was done before under its id. Nothing was given back again."`
	Limits    []LimitState `json:"limits" doc:"The limits as they stand after the refund."`
}

// ReservationRequest is the body of POST /v1/reservations.
type ReservationRequest struct {
	Customer   string            `json:"customer" minLength:"1" maxLength:"200" pattern:"^[ -.0-~]+$" doc:"The customer's key."`
	Meter      string            `json:"meter" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The meter's key."`
	Cost       *int64            `json:"cost,omitempty" minimum:"1" maximum:"999999999999999" default:"1" doc:"Units to hold: the most that the request is expected to cost."`
	Attributes map[string]string `json:"attributes,omitempty" maxProperties:"16" doc:"Attributes, as of a hit."`
	TTL        int64             `json:"ttl_ms" minimum:"1" maximum:"86400000" doc:"How long the units are held, unless they are committed or released before. At most 24 h."`
	ID         *string           `json:"id,omitempty" minLength:"1" maxLength:"255" doc:"The idempotency key, here or as the header Idempotency-Key. The units are reserved once, however often the request is sent with this id."`
}

// Reservation is the answer to a successful reservation.
type Reservation struct {
	ID           string       `json:"id" doc:"The reservation's id. Commit or release the reservation by it."`
	ExpiresAt    time.Time    `json:"expires_at" doc:"The instant from which the held units count no more by the customer's clock, RFC 3339 in UTC."`
	Allowed      bool         `json:"allowed" doc:"Always true, because a refusal is answered with a problem."`
	Customer     string       `json:"customer" doc:"The customer's key."`
	Meter        string       `json:"meter" doc:"The meter's key."`
	Cost         int64        `json:"cost" doc:"Units that the reservation holds."`
	At           time.Time    `json:"at" doc:"The instant at which all limits judged the reservation, RFC 3339 in UTC."`
	TestClock    string       `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
	Replayed     bool         `json:"replayed" doc:"True if the units were reserved before under the id. This is the answer given then."`
	RetryAfterMS int64        `json:"retry_after_ms" doc:"Always 0, because the reservation was admitted."`
	Limits       []LimitState `json:"limits" doc:"The limits of the meter with the reserved units charged, in the plan's order. Empty if the meter has no limits."`
}

// CommitRequest is the body of POST /v1/reservations/{id}/commit.
type CommitRequest struct {
	Cost    int64 `json:"cost" minimum:"0" maximum:"999999999999999" doc:"Units that were used. They may be fewer or more than were reserved."`
	Overrun bool  `json:"overrun,omitempty" default:"false" doc:"The units have been spent already. All of them are charged and booked, past hard limits too. Such a limit says exceeded, and refuses until enough has come back."`
}

// Commit is the answer to a commit.
type Commit struct {
	ID        string       `json:"id" doc:"The reservation's id."`
	Customer  string       `json:"customer" doc:"The customer's key."`
	Meter     string       `json:"meter" doc:"The meter's key."`
	Cost      int64        `json:"cost" doc:"Units that are booked as usage."`
	Reserved  int64        `json:"reserved" doc:"Units that had been reserved."`
	Late      bool         `json:"late" doc:"True if the reservation had expired. All of the cost was charged now."`
	At        time.Time    `json:"at" doc:"The instant of the commit by the customer's clock, RFC 3339 in UTC."`
	TestClock string       `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
	Replayed  bool         `json:"replayed" doc:"True if the reservation was committed before. Nothing was charged again."`
	Limits    []LimitState `json:"limits" doc:"The limits as they stand after the commit."`
}

// NoRoom is the problem of a commit whose cost does not fit into a limit.
type NoRoom struct {
	Type        string       `json:"type" doc:"The type of the problem, a path of this server. The page there documents the problem."`
	Title       string       `json:"title" doc:"The title of the problem type, for people. It is the same for all problems of the type."`
	Status      int          `json:"status" doc:"The HTTP status, 409."`
	Detail      string       `json:"detail" doc:"An explanation of this one problem, for people."`
	Committable int64        `json:"committable" doc:"The largest cost that could be committed now."`
	Late        bool         `json:"late" doc:"True if the reservation had expired."`
	At          time.Time    `json:"at" doc:"The instant at which the commit was judged, RFC 3339 in UTC."`
	TestClock   string       `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
	Limits      []LimitState `json:"limits" doc:"What each limit says of the units that go beyond the reserved ones."`
}

// ImportLine is one line of an import.
type ImportLine struct {
	ID         string            `json:"id" minLength:"1" maxLength:"255" doc:"The idempotency key of the line, among those of its customer. The line is done once, however often it is sent with this id."`
	Customer   string            `json:"customer" minLength:"1" maxLength:"200" pattern:"^[ -.0-~]+$" doc:"The customer's key. An import creates no customer."`
	Meter      string            `json:"meter" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"The meter's key."`
	Cost       *int64            `json:"cost,omitempty" minimum:"1" maximum:"999999999999999" doc:"Of usage: units that were used."`
	At         *string           `json:"at,omitempty" format:"date-time" doc:"Of usage: when the units were used, RFC 3339.\n- From 1970 on, and not in the future by the customer's clock.\n- The units are usage of the hour of at.\n- The units count in windows that contain at and still run."`
	Limit      *string           `json:"limit,omitempty" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$" doc:"Of an opening balance: the name of one of the meter's limits. A concurrency limit has no opening balance."`
	Used       *int64            `json:"used,omitempty" minimum:"0" maximum:"999999999999999" doc:"Of an opening balance: units that count against the limit from now on. They replace what counted before. No usage is booked."`
	Level      *int64            `json:"level,omitempty" minimum:"0" maximum:"999999999999999" doc:"Of a level meter: what is held from now on, past limits, too."`
	Attributes map[string]string `json:"attributes,omitempty" maxProperties:"16" doc:"As of a hit: they name the buckets of limits per attribute."`
}

// Import is the result of an import.
type Import struct {
	Errors   []ImportError `json:"errors" doc:"All lines that were not done, in their order."`
	Lines    int64         `json:"lines" doc:"Lines that were read, without blank ones. The sum of imported, replayed and failed."`
	Imported int64         `json:"imported" doc:"Lines that were done."`
	Replayed int64         `json:"replayed" doc:"Lines that had been done before, under their ids. Nothing was done now."`
	Failed   int64         `json:"failed" doc:"Lines that were not done."`
	Stopped  string        `json:"stopped,omitempty" doc:"Why the import ended before its body did.\n- Lines that were not read were not done.\n- Send the whole body again. No line is done twice."`
}

// ImportError is a line that was not imported.
type ImportError struct {
	Line   int64  `json:"line" doc:"The line's number, from 1. Blank lines are counted."`
	ID     string `json:"id,omitempty" doc:"The line's id, if it was read."`
	Status int    `json:"status" doc:"The HTTP status that the line would have as a request of its own."`
	Type   string `json:"type" doc:"The type of the problem, as of other problems."`
	Detail string `json:"detail" doc:"Why the line was not done, for people."`
	Field  string `json:"field,omitempty" doc:"The member of the line that is wrong. If several are wrong, the first. The detail names more."`
}

// Decision is the answer to an admitted hit.
type Decision struct {
	Allowed      bool         `json:"allowed" doc:"Always true, because a hit that is refused is answered with a Refusal."`
	Customer     string       `json:"customer" doc:"The customer's key."`
	Meter        string       `json:"meter" doc:"The meter's key."`
	Cost         int64        `json:"cost" doc:"Units that the hit asked for. Of a level that was set, the units of the rise."`
	At           time.Time    `json:"at" doc:"The instant at which all limits judged the hit, RFC 3339 in UTC."`
	TestClock    string       `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
	Degraded     bool         `json:"degraded,omitempty" doc:"True if the database was out of reach. The hit was decided by the node's memory, and not charged. Absent otherwise."`
	Replayed     bool         `json:"replayed" doc:"True if the hit was charged before under its id. This is the answer given then."`
	RetryAfterMS *int64       `json:"retry_after_ms" doc:"The shortest wait in milliseconds after which the hit would be admitted, if nothing else happened. Null means never."`
	Limits       []LimitState `json:"limits" doc:"The limits of the meter after the decision, in the plan's order. Empty if the meter has no limits."`
}

// Refusal is both a problem document and the decision about a refused hit.
type Refusal struct {
	Type             string       `json:"type" doc:"The type of the problem, a URI of IANA's registry for an exceeded quota."`
	Title            string       `json:"title" doc:"The title of the problem type, for people: Quota exceeded."`
	Status           int          `json:"status" doc:"The HTTP status: 429, or the status that deny_status asked for."`
	Detail           string       `json:"detail" doc:"Why the hit was refused and when to send it again, for people."`
	ViolatedPolicies []string     `json:"violated-policies" doc:"The names of the limits that refuse. No names where only another hit of an atomic batch was refused."`
	Allowed          bool         `json:"allowed" doc:"Always false, because a hit that is admitted is answered with a Decision."`
	Customer         string       `json:"customer" doc:"The customer's key."`
	Meter            string       `json:"meter" doc:"The meter's key."`
	Cost             int64        `json:"cost" doc:"Units that the request asked for. No unit was charged."`
	At               time.Time    `json:"at" doc:"The instant at which all limits judged the request, RFC 3339 in UTC."`
	TestClock        string       `json:"test_clock,omitempty" doc:"The key of the test clock that the customer lives by. Absent in real time."`
	AsOf             *time.Time   `json:"as_of,omitempty" doc:"The instant of the state that the node remembered, RFC 3339 in UTC. Present only in a refusal from the node's memory."`
	Degraded         bool         `json:"degraded,omitempty" doc:"True if the database was out of reach, and the limit was used up in the node's memory. Absent otherwise."`
	Replayed         bool         `json:"replayed" doc:"Always false, because a refusal is never stored under an id."`
	RetryAfterMS     *int64       `json:"retry_after_ms" doc:"The shortest wait in milliseconds after which the request would be admitted, if nothing else happened. Null means never."`
	Limits           []LimitState `json:"limits" doc:"The limits of the meter as they judged the request, in the plan's order."`
}

// LimitState is the state of one limit.
type LimitState struct {
	Name         string     `json:"name" doc:"The limit's name."`
	Algorithm    string     `json:"algorithm" doc:"The limit's algorithm, as in the plan: fixed_window, sliding_window, sliding_log, token_bucket, allocation or concurrency."`
	Mode         string     `json:"mode" doc:"The limit's mode, as in the plan: hard, soft or shadow."`
	Limit        int64      `json:"limit" doc:"Units in a window. Of an allocation, units in all. Of a concurrency, units in flight."`
	Used         int64      `json:"used" doc:"Units that count against the limit now. Of a token bucket, the burst less remaining."`
	Remaining    int64      `json:"remaining" doc:"The largest cost that the limit would admit now."`
	Exceeded     bool       `json:"exceeded" doc:"- Of any limit: the limit is past its units. A hard limit is so after an overrun, or when its limit was lowered.\n- Of a soft limit also: the limit did not admit the hit, which passed all the same.\n- Of a shadow also: the limit would have refused the hit."`
	RetryAfterMS *int64     `json:"retry_after_ms" doc:"Of a refusal, the wait in milliseconds after which this limit would admit the hit.\n- 0: the limit admits the hit, as a soft limit does.\n- Null: never."`
	ResetAt      *time.Time `json:"reset_at" doc:"The instant at which the whole quota of the limit would be there again, RFC 3339 in UTC. Null means never, as of an allocation in use."`
	Window       *string    `json:"window" doc:"The window, as in the plan. Null for an allocation and for a concurrency."`
}
