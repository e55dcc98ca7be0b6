package described

import "testing"

const document = `{"openapi":"3.1.0","paths":{"/v1/things/{key}":{"get":{"responses":{
	"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Thing"}}}},
	"default":{"content":{"application/json; charset=utf-8":{"schema":{"type":"string"}}}}}}}},
	"components":{"schemas":{"Thing":{"type":"object","required":["n"],"properties":{
		"n":{"type":"integer","format":"int64"},"at":{"type":["string","null"],"format":"date-time"},
		"as":{"type":["string","null"],"x-extensible-enum":["a","b"]},"of":{"type":"array","items":{"$ref":"#/components/schemas/Thing"}}}}}}}`

// A body fits its schema, all the way down.
func TestBody(t *testing.T) {
	d, err := New([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	for body, fits := range map[string]bool{
		`{"n":1}`:                   true,
		`{"n":1,"at":null,"of":[]}`: true,
		`{"n":1,"at":"2026-02-28T00:00:00.000001Z","of":[{"n":2}]}`: true,
		`{"n":9223372036854775807}`:                                 true,
		`{"n":9223372036854775808}`:                                 false,
		`{"n":1.5}`:                                                 false,
		`{"n":1,"as":"b"}`:                                          true,
		`{"n":1,"as":null}`:                                         true,
		`{"n":1,"as":"c"}`:                                          false,
		`{}`:                                                        false,
		`{"n":1,"m":1}`:                                             false,
		`{"n":1,"at":"yesterday"}`:                                  false,
		`{"n":1,"at":"2026-02-28"}`:                                 false,
		`{"n":1,"of":[{"n":2,"of":[{}]}]}`:                          false,
		`[]`:                                                        false,
		`{"n":1}{}`:                                                 false,
		``:                                                          false,
	} {
		if err := d.Body("/v1/things/{key}", "GET", "200", "application/json", []byte(body)); (err == nil) != fits {
			t.Errorf("%s: %v", body, err)
		}
	}
	if err := d.Body("/v1/things/{key}", "GET", "default", "application/json; charset=utf-8", []byte(`"x"`)); err != nil {
		t.Error(err)
	}
	for _, c := range [][3]string{{"/v1/things", "GET", "200"}, {"/v1/things/{key}", "PUT", "200"}, {"/v1/things/{key}", "GET", "201"}} {
		if err := d.Body(c[0], c[1], c[2], "application/json", []byte(`{"n":1}`)); err == nil {
			t.Errorf("%v is not in the document, and passes", c)
		}
	}
}
