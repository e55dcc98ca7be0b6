package api

import (
	"strings"
	"testing"
)

// What is wrong is said with its name and the next call.
func TestProblemsSayWhatToDo(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(201, "PUT", "/v1/meters/other", `{"unit":"x"}`)
	n.want(201, "PUT", "/v1/customers/gone", `{"name":"x","plan":"pro","timezone":"UTC"}`)
	n.want(204, "DELETE", "/v1/customers/gone", "")
	acme := n.want(200, "GET", "/v1/customers/acme", "")
	planWith := func(limit string) string {
		return `{"name":"x","currency":"USD","interval":"month","limits":[{"name":"l","meter":"requests","algorithm":` + limit + `}]}`
	}
	long := strings.Repeat("k", 200)
	for _, c := range []struct {
		status             int
		method, path, body string
		says               string
	}{
		{
			404, "POST", "/v1/hits", `{"customer":"a \"b\" c","meter":"requests"}`,
			`there is no customer "a \"b\" c", or it is archived for good: a new one is made with PUT /v1/customers/a%20%22b%22%20c`,
		},
		{404, "POST", "/v1/hits", `{"customer":"` + long + `","meter":"requests"}`, `there is no customer "` + long[:100] +
			`…", or it is archived for good: a new one is made with PUT /v1/customers/{key}`},
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
		{
			422, "POST", "/v1/hits", `{"customr":"acme"}`,
			"customr: is not known here: did you mean customer? Known are customer, meter, cost, attributes, id, dry_run",
		},
		{422, "POST", "/v1/hits/batch", `{"hit":[]}`, "hit: is not known here: did you mean hits? Known are hits, atomic"},
		{422, "POST", "/v1/hits?dry_run=true", `{}`, "dry_run: is not a parameter of this route: it belongs in the body"},
		{422, "POST", "/v1/hits?denystatus=200", `{}`, "denystatus: is not a parameter of this route: did you mean deny_status? Known are deny_status"},
		{422, "GET", "/v1/customers/acme?x=1", "", "x: is not a parameter of this route"},
		{422, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":"2"}`, "cost: must be without quotes: a whole number"},
		{422, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":1e3}`, "cost: must be a whole number of at most 999999999999999"},
		{422, "POST", "/v1/refunds", `{"customer":"acme","meter":"requests","id":"r"}`, "cost: is required: how many units to give back, from 1 to 999999999999999"},
		{422, "PUT", "/v1/customers/new", `{"name":"x"}`, "plan: is required: it must be 1 to 200"},
		{422, "PUT", "/v1/customers/new", `{"name":"x","timezone":""}`, "timezone: must be an IANA timezone, such as UTC or Europe/Berlin; left out it is UTC"},
		{
			422, "PUT", "/v1/customers/new", `{"name":"x","plan":"pro","timezone":"europe/berlin"}`,
			`timezone: "europe/berlin" is no IANA timezone, such as UTC or Europe/Berlin; capitals count`,
		},
		{
			422, "PUT", "/v1/customers/new", `{"name":"x","plan":"pro","timezone":"UTC","test_clock":"none"}`,
			"no such test clock: make it with PUT /v1/test-clocks/none",
		},
		{
			422, "PUT", "/v1/plans/new", `{"name":"x"}`,
			"currency: is required: an ISO 4217 code in capitals, such as USD, of a currency with a minor unit; interval: is required: day, week, month or year",
		},
		{
			422, "PUT", "/v1/plans/new", `{"name":"x","currency":"usd","interval":"hour","prices":[{"meter":"requests"}]}`,
			"currency: must be an ISO 4217 code in capitals, such as USD, of a currency with a minor unit; interval: must be day, week, month or year; prices[0].model: is required: per_unit",
		},
		{422, "POST", "/v1/keys", `{"name":"x"}`, "scope: is required: admin, support, backend or read"},
		{405, "PATCH", "/v1/customers/acme", "", "this path does not have the method PATCH: it has GET, HEAD, PUT, DELETE"},
		{
			429, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":6}`,
			"Limit hourly never admits more than 5 at once. The hit costs 6: split it, or raise the limit.",
		},
		{
			428, "PUT", "/v1/customers/acme", `{"name":"x","plan":"pro","timezone":"UTC"}`,
			"GET it, look at what would be overwritten, and send the ETag of that answer in the header If-Match. Now it is If-Match: " + acme.header.Get("ETag"),
		},
		{428, "PUT", "/v1/plans/pro", `{"name":"x","currency":"USD","interval":"month"}`, `in the header If-Match. Now it is If-Match: "1"`},
		{422, "PUT", "/v1/plans/new", planWith(`"fixed_window","limit":-1,"window":"1h"`), "limits[0].limit: must be between 0 (closed) and 999999999999999"},
		{422, "PUT", "/v1/plans/new", planWith(`"fixed_window","window":"1h"`), "limits[0].limit: is required: a whole number from 0 (closed) to 999999999999999"},
		{422, "PUT", "/v1/plans/new", planWith(`"fixed_window","limit":1,"window":3600`), `limits[0].window: must be a string such as "1h"`},
		{422, "PUT", "/v1/plans/new", planWith(`"sliding_log","limit":1,"window":"1h","precision":1`), `limits[0].precision: must be a string such as "1s"`},
		{
			422, "PUT", "/v1/plans/new", `{"name":"x","currency":"USD","interval":"month","prices":[{"meter":"requests","model":"per_unit","unit_price":0.5}]}`,
			`prices[0].unit_price: must be a string such as "0.05"`,
		},
		{
			422, "PUT", "/v1/plans/new", planWith(`"fixed_window","limit":1,"window":"month"`),
			`limits[0].window: must be "calendar_month" for the calendar's in the customer's timezone, or a duration such as "720h" or "30d"`,
		},
		{
			422, "PUT", "/v1/plans/new", planWith(`"fixed_window","limit":1,"window":"daily"`),
			`limits[0].window: must be "calendar_day" for the calendar's in the customer's timezone, or a duration such as "24h" or "1d"`,
		},
		{422, "PUT", "/v1/plans/new", planWith(`"token_bucket","limit":1,"window":"1 month"`), `limits[0].window: must be a duration such as "720h" or "30d"`},
		{
			422, "PUT", "/v1/plans/new", planWith(`"fixed_window","limit":1,"window":"3600"`),
			`such as "90s" or "1d", at most 3660d, or calendar_day, calendar_week, calendar_month, calendar_year or billing_period`,
		},
		{422, "PUT", "/v1/customers/acme/overrides/hourly", `{}`, "limit: is required: a whole number from 0 (closed) to 999999999999999"},
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

// Who may not is told by whom.
func TestKeysThatMayNot(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for _, c := range []struct {
		status            int
		key, method, path string
		says              string
	}{
		{401, "-", "GET", "/v1/plans", "Authorization: Bearer <key>. An admin makes a key with POST /v1/keys"},
		{401, "Bearer qk_wrong", "GET", "/v1/plans", "revoked or expired. An admin makes a key with POST /v1/keys"},
		{403, n.key("backend"), "GET", "/v1/plans", "this key has the scope backend; needed is read, support or admin"},
		{403, n.key("backend"), "GET", "/v1/keys", "this key has the scope backend; needed is admin"},
		{403, n.key("read"), "POST", "/v1/hits", "this key has the scope read; needed is backend or admin"},
	} {
		if got := n.want(c.status, c.method, c.path, "", "Authorization", c.key); !strings.Contains(got.json["detail"].(string), c.says) {
			t.Errorf("%s %s: %q does not say %q", c.method, c.path, got.json["detail"], c.says)
		}
	}
}
