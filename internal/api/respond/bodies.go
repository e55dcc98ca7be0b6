package respond

import "time"

// The answers that are built by hand, as types: for their schemas, and for tests that
// hold the bytes against them.

// Decision is the answer of a hit that was admitted.
type Decision struct {
	Allowed      bool         `json:"allowed"`
	Customer     string       `json:"customer"`
	Meter        string       `json:"meter"`
	Cost         int64        `json:"cost"`
	At           time.Time    `json:"at" doc:"The hit's one instant."`
	TestClock    string       `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
	AsOf         *time.Time   `json:"as_of,omitempty" doc:"Of a refusal from a node's memory: when its view was read."`
	Degraded     bool         `json:"degraded,omitempty" doc:"The database was out of reach: let in, and not charged."`
	Replayed     bool         `json:"replayed" doc:"The hit was charged before, under its id: this is the answer given then."`
	RetryAfterMS *int64       `json:"retry_after_ms" doc:"The shortest wait after which the hit would be admitted if nothing else happened; null for never."`
	Limits       []LimitState `json:"limits"`
}

// Refusal is a problem document and a decision in one.
type Refusal struct {
	Type             string       `json:"type"`
	Title            string       `json:"title"`
	Status           int          `json:"status"`
	Detail           string       `json:"detail"`
	ViolatedPolicies []string     `json:"violated-policies" doc:"The names of the limits that refuse; none where only another hit of an atomic batch was refused."`
	Allowed          bool         `json:"allowed"`
	Customer         string       `json:"customer"`
	Meter            string       `json:"meter"`
	Cost             int64        `json:"cost"`
	At               time.Time    `json:"at"`
	TestClock        string       `json:"test_clock,omitempty"`
	AsOf             *time.Time   `json:"as_of,omitempty"`
	Replayed         bool         `json:"replayed"`
	RetryAfterMS     *int64       `json:"retry_after_ms"`
	Limits           []LimitState `json:"limits"`
}

// LimitState is what is said of one limit.
type LimitState struct {
	Name         string     `json:"name"`
	Algorithm    string     `json:"algorithm"`
	Mode         string     `json:"mode"`
	Limit        int64      `json:"limit"`
	Used         int64      `json:"used"`
	Remaining    int64      `json:"remaining" doc:"The largest cost that it would admit now."`
	Exceeded     bool       `json:"exceeded" doc:"Of a soft limit: it did not admit the hit, which passed all the same, or stands past its limit. Of a shadow: it would have refused."`
	RetryAfterMS *int64     `json:"retry_after_ms" doc:"Of a refusal: when this limit would admit the hit, 0 for one that admits it, as a soft one does; null for never."`
	ResetAt      *time.Time `json:"reset_at" doc:"When its whole quota would be there again; null for never, as of an allocation in use."`
	Window       *string    `json:"window" doc:"As the plan has it; null for an allocation and for concurrency."`
}
