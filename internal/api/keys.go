package api

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"quotad/client"
	"quotad/internal/calendar"
	"quotad/internal/plans"
)

func showKey(k plans.Key) client.Key {
	body := client.Key{ID: k.ID, Name: k.Name, Scope: string(k.Scope), CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt}
	if k.UsedOn != nil {
		on := k.UsedOn.Format(time.DateOnly)
		body.UsedOn = &on
	}
	return body
}

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

// timeMembers are decode's options for a type with a *time.Time, which is read as a timestamp.
var timeMembers = json.JoinOptions(strict, json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, at *time.Time) error {
	var t timestamp
	err := t.UnmarshalJSONFrom(d)
	if t.at != nil {
		*at = *t.at
	}
	return err
})))

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
	at := timeOf(us)
	t.at = &at
	return nil
}

const errWantTime = mismatch(`must be an RFC 3339 time such as "2026-01-31T12:00:00Z"`)

// Schema implements huma.SchemaProvider.
func (timestamp) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Nullable: true}
}

func (s *Server) createKey(c *call) (answer, error) {
	var in client.KeyRequest
	if err := decodeBy(timeMembers, c.body, &in); err != nil {
		return answer{}, err
	}
	key, secret, err := s.store.CreateKey(c.ctx(), in.Name, plans.Scope(in.Scope), in.ExpiresAt)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusCreated, body: client.NewKey{Key: showKey(key), Secret: secret}}, nil
}

func (s *Server) listKeys(c *call) (answer, error) {
	list, err := s.store.ListKeys(c.ctx(), c.query.page())
	return listAnswer(list, err, showKey)
}

func (s *Server) revokeKey(c *call) (answer, error) {
	id, err := nameInPath(c.r, "id")
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, s.store.RevokeKey(c.ctx(), id)
}
