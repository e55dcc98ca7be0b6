package api

import (
	"strings"
	"testing"
)

// What is wrong is said with its name and the next call.
func TestProblemsSayWhatToDo(t *testing.T) {
	n := newNode(t)
	n.setUp(hourly)
	n.want(201, "PUT", "/v1/meters/other", `{"unit":"x"}`)
	n.want(201, "PUT", "/v1/customers/gone", `{"name":"x","plan":"pro","timezone":"UTC"}`)
	n.want(204, "DELETE", "/v1/customers/gone", "")
	long := strings.Repeat("k", 200)
	for _, c := range []struct {
		status             int
		method, path, body string
		says               string
	}{
		{404, "POST", "/v1/hits", `{"customer":"a \"b\" c","meter":"requests"}`, `there is no customer "a \"b\" c", or it is archived for good: a new one is made with PUT /v1/customers/a%20%22b%22%20c`},
		{404, "POST", "/v1/hits", `{"customer":"` + long + `","meter":"requests"}`, `there is no customer "` + long[:100] + `…", or it is archived for good: a new one is made with PUT /v1/customers/{key}`},
		{404, "POST", "/v1/hits", `{"customer":"acme","meter":"none"}`, `there is no meter "none": declare it with PUT /v1/meters/none`},
		{403, "POST", "/v1/hits", `{"customer":"acme","meter":"other"}`, `customer "acme" does not include the meter "other"`},
		{404, "GET", "/v1/customers/a%7Cb", "", `there is no customer "a|b"`},
		{404, "GET", "/v1/customers/none/quota", "", `there is no customer "none"`},
		{404, "GET", "/v1/customers/acme/usage?meter=none", "", `there is no meter "none"`},
		{409, "PUT", "/v1/customers/gone", `{"name":"x","plan":"pro","timezone":"UTC"}`, `"gone" is archived`},
		{404, "GET", "/v1/meters/none", "", `there is no meter "none"`},
		{404, "GET", "/v1/plans/none", "", `there is no plan "none": write it with PUT /v1/plans/none`},
		{404, "GET", "/v1/plans/none/versions", "", `there is no plan "none"`},
		{404, "GET", "/v1/plans/pro/versions/9", "", `the plan "pro" has no version 9: GET /v1/plans/pro/versions`},
		{404, "DELETE", "/v1/keys/key_none", "", `there is no key "key_none": GET /v1/keys`},
		{428, "PUT", "/v1/customers/acme", `{"name":"x","plan":"pro","timezone":"UTC"}`, "send its ETag in If-Match"},
	} {
		if got := n.want(c.status, c.method, c.path, c.body); !strings.Contains(got.json["detail"].(string), c.says) {
			t.Errorf("%s %s %s: %q does not say %q", c.method, c.path, c.body, got.json["detail"], c.says)
		}
	}
	got := n.want(412, "PUT", "/v1/customers/acme", `{"name":"x","plan":"pro","timezone":"UTC"}`, "If-Match", `"1"`)
	if !strings.Contains(got.json["detail"].(string), "GET it again and send its ETag") {
		t.Errorf("412: %s", got.text)
	}
	got = n.want(412, "PUT", "/v1/customers/acme", `{"name":"x","plan":"pro","timezone":"UTC"}`, "If-None-Match", `*`)
	if !strings.Contains(got.json["detail"].(string), "If-None-Match: * writes only") {
		t.Errorf("412: %s", got.text)
	}
	got = n.want(200, "POST", "/v1/hits/batch", `{"hits":[{"customer":"none","meter":"requests"}]}`)
	if !strings.Contains(got.text, `there is no customer \"none\"`) {
		t.Errorf("in a batch: %s", got.text)
	}
}

func TestSpans(t *testing.T) {
	for seconds, want := range map[int64]string{
		1: "1 s", 59: "59 s", 60: "1 min", 61: "1 min 1 s", 431: "7 min 11 s", 3599: "59 min 59 s", 3600: "1 h",
		3601: "1 h 1 min", 4320: "1 h 12 min", 4321: "1 h 13 min", 86399: "24 h", 86400: "1 d", 86401: "1 d 1 h",
		2 * 86400: "2 d", 30*86400 + 4*3600: "30 d 4 h", 9_223_372_036_855: "106751991 d 5 h",
	} {
		if got := string(appendSpan(nil, seconds)); got != want {
			t.Errorf("%d s: %q, not %q", seconds, got, want)
		}
	}
	if got := string(appendSpan([]byte("in "), 3)); got != "in 3 s" {
		t.Error(got)
	}
}
