package api

import (
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"quotad/internal/api/respond"
	"quotad/internal/calendar"
)

// A timestamp is an RFC 3339 time in a request, or null. It is converted to UTC and cut to
// microseconds, as it is stored.
type timestamp struct{ at *time.Time }

// UnmarshalJSONFrom implements jsonv2's UnmarshalerFrom.
func (t *timestamp) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	return t.read(value)
}

// micros is the instant, µs, or nil.
func (t timestamp) micros() *int64 {
	if t.at == nil {
		return nil
	}
	at := t.at.UnixMicro()
	return &at
}

func (t *timestamp) read(value jsontext.Value) error {
	if value.Kind() == 'n' {
		return nil
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return errWantTime
	}
	us, err := calendar.ParseInstant(string(text))
	if err != nil {
		return errWantTime
	}
	at := respond.Time(us)
	t.at = &at
	return nil
}

const errWantTime = mismatch(`must be an RFC 3339 time such as "2026-01-31T12:00:00Z"`)

// Schema implements huma.SchemaProvider.
func (timestamp) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Nullable: true}
}
