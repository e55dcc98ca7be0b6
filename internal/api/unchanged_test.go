package api

import "testing"

// A PUT that changes nothing is 200 with the same ETag, and writes nothing.
func TestPutsThatChangeNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	n.want(200, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	for _, c := range []struct{ path, body, other string }{
		{
			"/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","limits":[{"name":"hourly","meter":"requests","algorithm":"fixed_window","limit":5,"window":"1h"}]}`,
			`{"name":"Pro","currency":"USD","interval":"month","limits":[{"name":"hourly","meter":"requests","algorithm":"fixed_window","limit":6,"window":"1h"}]}`,
		},
		{"/v1/customers/acme", `{"name":"Acme","plan":"pro"}`, `{"name":"Acme","plan":"pro","timezone":"Europe/Berlin"}`},
	} {
		first := n.want(201, "PUT", c.path, c.body)
		etag := first.header.Get("ETag")
		for range 2 {
			again := n.want(200, "PUT", c.path, c.body, "If-Match", etag)
			if again.header.Get("ETag") != etag || again.text != first.text {
				t.Errorf("%s: ETag %s and %s, not %s and %s", c.path, again.header.Get("ETag"), again.text, etag, first.text)
			}
		}
		n.want(428, "PUT", c.path, c.body)
		n.want(412, "PUT", c.path, c.body, "If-Match", `"999"`)
		if got := n.do("PUT", c.path, c.other, "If-Match", etag); got.status >= 300 || got.header.Get("ETag") == etag {
			t.Errorf("%s: what differs is %d: %s", c.path, got.status, got.text)
		}
	}
	if got := n.want(200, "GET", "/v1/plans/pro/versions", ""); len(got.json["items"].([]any)) != 2 {
		t.Errorf("versions: %s", got.text)
	}
}

func TestTimezoneIsUTCWhenLeftOut(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	got := n.want(201, "PUT", "/v1/customers/fresh", `{"name":"Fresh","plan":"pro"}`)
	if got.json["timezone"] != "UTC" {
		t.Errorf("made: %s", got.text)
	}
	n.want(200, "PUT", "/v1/customers/fresh", `{"name":"Fresh","plan":"pro","timezone":"Asia/Tokyo"}`, "If-Match", "*")
	if got = n.want(200, "PUT", "/v1/customers/fresh", `{"name":"Fresh","plan":"pro"}`, "If-Match", "*"); got.json["timezone"] != "UTC" {
		t.Errorf("replaced: %s", got.text)
	}
}
