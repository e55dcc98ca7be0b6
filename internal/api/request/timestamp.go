package request

import (
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"quotad/internal/api/respond"
	"quotad/internal/calendar"
)

// Timestamp is an RFC 3339 time in a request, or null. It is converted to UTC and truncated to microseconds, as
// it is stored.
type Timestamp struct{ At *time.Time }

// UnmarshalJSONFrom implements jsonv2's UnmarshalerFrom.
func (t *Timestamp) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	return t.Read(value)
}

// readTime decodes a *time.Time of a body like a Timestamp.
func readTime(d *jsontext.Decoder, at *time.Time) error {
	var t Timestamp
	err := t.UnmarshalJSONFrom(d)
	if t.At != nil {
		*at = *t.At
	}
	return err
}

// Micros returns the instant, µs, or nil.
func (t Timestamp) Micros() *int64 {
	if t.At == nil {
		return nil
	}
	at := t.At.UnixMicro()
	return &at
}

// Read reads a JSON value.
func (t *Timestamp) Read(value jsontext.Value) error {
	if value.Kind() == 'n' {
		return nil
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return ErrWantTime
	}
	us, err := calendar.ParseInstant(string(text))
	if err != nil {
		return ErrWantTime
	}
	at := respond.Time(us)
	t.At = &at
	return nil
}

// ErrWantTime is the error for a text that is not an RFC 3339 time.
const ErrWantTime = Mismatch(`must be an RFC 3339 time such as "2026-01-31T12:00:00Z"`)

// Schema implements huma.SchemaProvider.
func (Timestamp) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Nullable: true}
}
