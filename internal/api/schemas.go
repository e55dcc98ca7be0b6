package api

import (
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// The answers that are built by hand, as types: for their schemas, and for tests that
// hold the bytes against them.

// decisionBody is the answer of a hit that was admitted.
type decisionBody struct {
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
	Limits       []limitState `json:"limits"`
}

// refusalBody is a problem document and a decision in one.
type refusalBody struct {
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
	Limits           []limitState `json:"limits"`
}

// limitState is what is said of one limit.
type limitState struct {
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

// quotaLimit is limitState in the quota answer.
type quotaLimit struct {
	Name         string     `json:"name"`
	Algorithm    string     `json:"algorithm"`
	Mode         string     `json:"mode"`
	Limit        int64      `json:"limit"`
	Used         int64      `json:"used"`
	Remaining    int64      `json:"remaining"`
	Exceeded     bool       `json:"exceeded"`
	RetryAfterMS *int64     `json:"retry_after_ms"`
	ResetAt      *time.Time `json:"reset_at"`
	Window       *string    `json:"window"`
	Meter        string     `json:"meter"`
	Reserved     int64      `json:"reserved" doc:"Units of used that open reservations hold."`
}

// problemBody is every other problem document.
type problemBody struct {
	Type   string       `json:"type" doc:"A path of this server with the documentation of the problem."`
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail"`
	Errors []fieldError `json:"errors,omitempty"`
}

type fieldError struct {
	Field  string `json:"field" doc:"A path such as limits[0].window, or a parameter's name."`
	Detail string `json:"detail"`
}

// batchResults is the answer of a batch.
type batchResults struct {
	Results []batchResult `json:"results"`
}

// batchResult is a decision, a refusal or a problem.
type batchResult struct{}

// Schema implements huma.SchemaProvider.
func (batchResult) Schema(r huma.Registry) *huma.Schema {
	of := func(t reflect.Type) *huma.Schema { return r.Schema(t, true, "") }
	return &huma.Schema{AnyOf: []*huma.Schema{
		of(reflect.TypeFor[decisionBody]()), of(reflect.TypeFor[refusalBody]()), of(reflect.TypeFor[problemBody]()),
	}}
}

// Schema implements huma.SchemaProvider.
func (limitList) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: r.Schema(reflect.TypeFor[quotaLimit](), true, "")}
}

// schemaName turns a Go type's name into the document's: meterBody is Meter, and
// listBody[…meterBody] is MeterList.
func schemaName(t reflect.Type, hint string) string {
	name := t.Name()
	if t.Kind() == reflect.Pointer {
		name = t.Elem().Name()
	}
	if inner, ok := strings.CutPrefix(name, "listBody["); ok {
		inner = strings.TrimSuffix(inner[strings.LastIndexByte(inner, '.')+1:], "]")
		return capital(inner) + "List"
	}
	if name == "" {
		name = hint
	}
	return capital(name)
}

func capital(name string) string {
	for _, end := range []string{"Body", "JSON"} {
		name = strings.TrimSuffix(name, end)
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
