package respond

import "time"

// The answers that are built by hand, as types. The types serve the schemas, and the tests
// that compare them with the bytes of answers.

// Decision is the answer of a hit that was admitted.
type Decision struct {
	Allowed      bool         `json:"allowed"`
	Customer     string       `json:"customer"`
	Meter        string       `json:"meter"`
	Cost         int64        `json:"cost"`
	At           time.Time    `json:"at" doc:"The instant at which all limits judged the hit."`
	TestClock    string       `json:"test_clock,omitempty" doc:"The test clock that the customer lives by."`
	AsOf         *time.Time   `json:"as_of,omitempty" doc:"Only of a refusal from a node's memory: when the node read what it remembers."`
	Degraded     bool         `json:"degraded,omitempty" doc:"The database was out of reach. The hit was let in and not charged."`
	Replayed     bool         `json:"replayed" doc:"The hit was charged before, under its id. This is the answer given then."`
	RetryAfterMS *int64       `json:"retry_after_ms" doc:"The shortest wait after which the hit would be admitted, if nothing else happened. Null: never."`
	Limits       []LimitState `json:"limits"`
}

// Refusal is a problem document and a decision in one.
type Refusal struct {
	Type             string       `json:"type"`
	Title            string       `json:"title"`
	Status           int          `json:"status"`
	Detail           string       `json:"detail"`
	ViolatedPolicies []string     `json:"violated-policies" doc:"The names of the limits that refuse. No names where only another hit of an atomic batch was refused."`
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
	Remaining    int64      `json:"remaining" doc:"The largest cost that the limit would admit now."`
	Exceeded     bool       `json:"exceeded" doc:"- Of any limit: the limit is past its units. A hard limit is so after an overrun, or when its limit was lowered.\n- Of a soft limit also: the limit did not admit the hit, which passed all the same.\n- Of a shadow also: the limit would have refused the hit."`
	RetryAfterMS *int64     `json:"retry_after_ms" doc:"Of a refusal: after which wait this limit would admit the hit.\n- 0: the limit admits the hit, as a soft limit does.\n- Null: never."`
	ResetAt      *time.Time `json:"reset_at" doc:"When the whole quota of the limit would be there again. Null: never, as of an allocation in use."`
	Window       *string    `json:"window" doc:"The window, as in the plan. Null for an allocation and for a concurrency."`
}
