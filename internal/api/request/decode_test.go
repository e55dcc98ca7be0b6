package request

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"quotad/client"
	"quotad/internal/api/problem"
)

func TestDecodeNamesTheField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body   string
		status int
		field  string
		detail string
	}{
		{`{"limits":[{},{"window":7}]}`, 422, "limits[1].window", `must be a string such as "1h"`},
		{
			`{"limits":[{"windw":"1s"}]}`, 422, "limits[0].windw",
			"is not known here: did you mean window? Known are meter, name, algorithm, limit, window, burst, align, precision, per, ttl, mode, on_outage, notify",
		},
		{`{"limits":[{"limit":1.5}]}`, 422, "limits[0].limit", "must be a whole number of at most 999999999999999, without fraction or exponent"},
		{`{"limits":[{"limit":"15"}]}`, 422, "limits[0].limit", "must be without quotes: a whole number of at most 999999999999999, without fraction or exponent"},
		{`{"limits":[{"limit":99999999999999999999}]}`, 422, "limits[0].limit", "must be a whole number of at most 999999999999999, without fraction or exponent"},
		{`{"limits":[{"burst":null}]}`, 422, "limits[0].burst", "must not be null: give it a value, or leave it out where it may be"},
		{`{"limits":[{"up_to":null}]}`, 422, "limits[0].up_to", ""},
		{
			`{"prices":[{"up_to":null}]}`, 422, "prices[0].up_to",
			"is not known here. Known are meter, model, unit_price, package_size, package_price, tiers, included, minimum_minor, maximum_minor, level_by",
		},
		{`{"features":{"up_to":null}}`, 422, "features.up_to", ""},
		{`{"features":{"expires_at":null}}`, 422, "features.expires_at", ""},
		{`{"features":{"` + strings.Repeat("x", 60_000) + `":null}}`, 422, "features." + strings.Repeat("x", 91) + "…", ""},
		{`[]`, 422, "", "the body must be a JSON object"},
		{`null`, 422, "", "the body must be a JSON object"},
		{`{"limits":{}}`, 422, "limits", "must be an array"},
		{`{"limits":[[]]}`, 422, "limits[0]", "must be an object"},
		{`{"features":{"a":[1]}}`, 422, "features.a", "must be true, false, a number or a string"},
		{`{"features":{"a":null}}`, 422, "features.a", ""},
		{`{"features":{"a":{"b":1}}}`, 422, "features.a", ""},
		{`{"prices":[{"tiers":[{"up_to":"x"}]}]}`, 422, "prices[0].tiers[0].up_to", ""},
		{`{"prices":[{"unit_price":0.1}]}`, 422, "prices[0].unit_price", `must be a string such as "0.05"`},
		{`{"name":"a","name":"b"}`, 422, "name", "is there more than once"},
		{`{"name":"a","name":"b"`, 400, "", ""},
		{`{"name":1,`, 400, "", ""},
		{`{"name":1} 2`, 400, "", ""},
	} {
		_, err := DecodePlan([]byte(c.body))
		if err == nil {
			t.Errorf("%s is taken", c.body)
			continue
		}
		f := problem.Of(err)
		if f.Kind.Status != c.status {
			t.Errorf("%s: %d, want %d: %s", c.body, f.Kind.Status, c.status, f.Detail)
		} else if c.status == 422 && (f.Fields[0].Field != c.field || c.detail != "" && f.Fields[0].Detail != c.detail) {
			t.Errorf("%s: %v, want %s: %s", c.body, f.Fields, c.field, c.detail)
		}
	}
	_, err := DecodePlan([]byte(`{"name":"the word null in a string"}`))
	check(t, err)
}

// Null means something in two places; a client's own names are not among them.
func TestDecodeRefusesNullsInMaps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body, field string
		into        any
	}{
		{`{"metadata":{"expires_at":null}}`, "metadata.expires_at", new(client.CustomerRequest)},
		{`{"metadata":{"up_to":null}}`, "metadata.up_to", new(client.CustomerRequest)},
		{`{"attributes":{"up_to":null}}`, "attributes.up_to", new(client.HitRequest)},
		{`{"attributes":{"/expires_at":null}}`, "attributes./expires_at", new(client.HitRequest)},
		{`{"attributes":{"expires_at":null}}`, "attributes.expires_at", new(client.HitRequest)},
		{`{"name":null}`, "name", new(client.KeyRequest)},
	} {
		f := problem.Of(Decode([]byte(c.body), c.into))
		if f.Kind != problem.KindInvalid || f.Fields[0].Field != c.field {
			t.Errorf("%s: %+v", c.body, f)
		}
	}
}

// What is left out is what it stands for, and numbers are those that were written.
func TestDecodePlan(t *testing.T) {
	t.Parallel()
	in, err := DecodePlan([]byte(`{"limits":[{"limit":0},{"limit":999999999999999},{}],
		"prices":[{"tiers":[{"up_to":null,"unit_price":"1"}]}],
		"features":{"a":1.50,"b":true,"c":"x","d":999999999999999}}`))
	check(t, err)
	if in.IntervalCount != 1 || in.Limits[0].Limit != 0 || in.Limits[1].Limit != 999999999999999 || in.Limits[2].Limit >= 0 {
		t.Errorf("got %+v", in)
	}
	want := map[string]any{"a": json.Number("1.50"), "b": true, "c": "x", "d": json.Number("999999999999999")}
	if !maps.Equal(in.Features, want) {
		t.Errorf("features %#v", in.Features)
	}
	if in, err := DecodePlan([]byte(`{"interval_count":0}`)); err != nil || in.IntervalCount != 0 {
		t.Errorf("an interval count of 0 became %d, %v", in.IntervalCount, err)
	}
}

// Timestamps that are none, and null, which means never.
func TestDecodeTimestamp(t *testing.T) {
	t.Parallel()
	for body, ok := range map[string]bool{
		`{"expires_at":null}`: true, `{"expires_at":"2026-01-31T12:00:00.1234567+02:00"}`: true, `{}`: true,
		`{"expires_at":"9999-12-31T23:59:59-14:00"}`: false, `{"expires_at":"2030-01-01T1:00:00Z"}`: false, `{"expires_at":"2030-01-01t00:00:00z"}`: true,
		`{"expires_at":"2026-01-31"}`: false, `{"expires_at":1}`: false, `{"expires_at":""}`: false, `{"expires_at":{}}`: false,
	} {
		var in client.KeyRequest
		err := DecodeBy(Members, []byte(body), &in)
		if (err == nil) != ok {
			t.Errorf("%s: %v", body, err)
		}
		if f := problem.Of(err); err != nil && (f.Kind != problem.KindInvalid || f.Fields[0].Field != "expires_at" || !strings.Contains(f.Detail, "RFC 3339")) {
			t.Errorf("%s: %d %v", body, f.Kind.Status, f.Fields)
		}
	}
}
