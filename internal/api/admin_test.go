package api

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"quotad/internal/api/respond"
)

func TestMeters(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/meters/a.b:c-d_e", `{"unit":"token","name":"Tokens"}`)
	n.want(200, "PUT", "/v1/meters/a.b:c-d_e", `{"unit":"tokens"}`)
	if got := n.want(200, "GET", "/v1/meters/a.b:c-d_e", ""); got.json["unit"] != "tokens" || got.json["name"] != "" {
		t.Errorf("meter: %s", got.text)
	}
	n.want(404, "GET", "/v1/meters/none", "")
	for _, body := range []string{`{}`, `{"unit":""}`, `{"unit":"a\u0000b"}`, `{"unit":"a","x":1}`, `{"unit":null}`} {
		n.want(422, "PUT", "/v1/meters/m", body)
	}
	for _, key := range []string{"a%20b", "a%2Fb", "%00", strings.Repeat("x", 201), "a%7Cb"} {
		n.want(422, "PUT", "/v1/meters/"+key, `{"unit":"x"}`)
	}
	n.want(400, "PUT", "/v1/meters/m", `{"unit":`)
	n.want(404, "GET", "/v1/meters/m", "")
}

// TestCustomersAreSearched: by words of the name in any case, and by the beginning of the key.
func TestCustomersAreSearched(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp("")
	for key, name := range map[string]string{"c1": "Söhne Müller", "c2": "MÜLLER & Co", "muller": "Else"} {
		n.want(201, "PUT", "/v1/customers/"+key, fmt.Sprintf(`{"name":%q,"plan":"pro"}`, name))
	}
	for search, want := range map[string]string{"müller": "c1 c2", "co müll": "c2", "muller": "c1 c2 muller", "acm": "acme", "nobody": "", "&": ""} {
		var keys []string
		for path := "/v1/customers?limit=1&search=" + url.QueryEscape(search); path != ""; {
			got := n.want(200, "GET", path, "")
			for _, item := range got.json["items"].([]any) {
				keys = append(keys, fmt.Sprint(item.(map[string]any)["key"]))
			}
			path = ""
			if next, more := got.json["next_cursor"].(string); more {
				path = "/v1/customers?limit=1&search=" + url.QueryEscape(search) + "&cursor=" + url.QueryEscape(next)
			}
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%s finds %q, want %q", search, got, want)
		}
	}
	for _, query := range []string{"search=a&prefix=b", "search=%00", "search=%FF", "search=" + strings.Repeat("x", 201)} {
		n.want(422, "GET", "/v1/customers?"+query, "")
	}
}

func TestListsArePaged(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for i := range 5 {
		n.want(201, "PUT", fmt.Sprintf("/v1/meters/m%d", i), `{"unit":"x"}`)
	}
	var keys []any
	path := "/v1/meters?limit=2"
	for pages := 1; ; pages++ {
		got := n.want(200, "GET", path, "")
		for _, item := range got.json["items"].([]any) {
			keys = append(keys, item.(map[string]any)["key"])
		}
		if got.json["next_cursor"] == nil {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		path = "/v1/meters?limit=2&cursor=" + url.QueryEscape(got.json["next_cursor"].(string))
	}
	if fmt.Sprint(keys) != "[m0 m1 m2 m3 m4]" {
		t.Errorf("keys %v", keys)
	}
	for _, query := range []string{
		"limit=0", "limit=1001", "limit=x", "limit=", "limit=1e2", "limit=%2B1", "limit=01", "cursor=nonsense", "cursor=%00",
		"page=1", "limit=1&limit=2",
	} {
		n.want(422, "GET", "/v1/meters?"+query, "")
	}
}

func TestPlansAndPreconditions(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	got := n.want(200, "GET", "/v1/plans/pro", "")
	etag := got.header.Get("ETag")
	features := got.json["features"].(map[string]any)
	if etag != `"1"` || features["ratio"] != 1.5 || features["sso"] != true || features["seats"] != 5.0 || features["tier"] != "gold" {
		t.Errorf("plan: %s %s", etag, got.text)
	}
	const plan = `{"name":"Pro 2","currency":"USD","interval":"month","base_price_minor":1,"limits":[],"prices":[]}`
	n.want(428, "PUT", "/v1/plans/pro", plan)
	n.want(412, "PUT", "/v1/plans/pro", plan, "If-Match", `"7"`)
	n.want(412, "PUT", "/v1/plans/pro", plan, "If-Match", `W/"1"`)
	n.want(412, "PUT", "/v1/plans/new", plan, "If-Match", `*`)
	n.want(412, "PUT", "/v1/plans/new", plan, "If-Match", `"1","2"`)
	n.want(412, "PUT", "/v1/plans/pro", plan, "If-None-Match", `*`)
	n.want(412, "PUT", "/v1/plans/pro", plan, "If-None-Match", `*`, "If-Match", etag)
	n.want(422, "PUT", "/v1/plans/pro", plan, "If-None-Match", etag)
	n.want(201, "PUT", "/v1/plans/fresh", plan, "If-None-Match", `*`)
	n.want(422, "PUT", "/v1/plans/pro", plan, "If-Match", `1`)
	if got := n.want(201, "PUT", "/v1/plans/pro", plan, "If-Match", etag); got.json["version"] != 2.0 || got.header.Get("ETag") != `"2"` {
		t.Errorf("second version: %s", got.text)
	}
	n.want(201, "PUT", "/v1/plans/pro", strings.Replace(plan, "Pro 2", "Pro 3", 1), "If-Match", `"9", "2"`)
	if got := n.want(200, "GET", "/v1/plans/pro/versions", ""); len(got.json["items"].([]any)) != 3 {
		t.Errorf("versions: %s", got.text)
	}
	if got := n.want(200, "GET", "/v1/plans/pro/versions/1", ""); got.json["name"] != "Pro" {
		t.Errorf("version 1: %s", got.text)
	}
	cursor := n.want(200, "GET", "/v1/plans/pro/versions?limit=1", "").json["next_cursor"].(string)
	n.want(200, "GET", "/v1/plans/pro/versions?cursor="+cursor, "")
	n.want(422, "GET", "/v1/plans/fresh/versions?cursor="+cursor, "")
	for path, status := range map[string]int{
		"pro/versions/9": 404, "none/versions": 404, "none/versions/1": 404, "none": 404,
		"pro/versions/0": 422, "pro/versions/x": 422, "pro/versions/99999999999": 422, "pro/versions/-1": 422,
		"pro/versions/01": 422, "pro/versions/+1": 422, "pro/versions/%2B1": 422, "pro/versions/1%20": 422, "pro/versions/%31": 200,
	} {
		n.want(status, "GET", "/v1/plans/"+path, "")
	}
}

func TestPlanFaults(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/meters/m", `{"unit":"x"}`)
	limit := func(fields string) string {
		return `{"name":"P","currency":"USD","interval":"month","base_price_minor":0,"limits":[{"meter":"m",` + fields + `}],"prices":[]}`
	}
	for body, field := range map[string]string{
		limit(`"name":"a","algorithm":"fixed_window","limit":1,"window":"0s"`):                                                                             "limits[0].window",
		limit(`"name":"a","algorithm":"fixed_window","limit":1,"window":"-1h"`):                                                                            "limits[0].window",
		limit(`"name":"a","algorithm":"fixed_window","limit":1,"window":"1y"`):                                                                             "limits[0].window",
		limit(`"name":"a","algorithm":"fixed_window","window":"1h"`):                                                                                       "limits[0].limit",
		limit(`"name":"a","algorithm":"fixed_window","limit":-1,"window":"1h"`):                                                                            "limits[0].limit",
		limit(`"name":"a","algorithm":"token_bucket","limit":999999999999999,"window":"3600d","burst":999999999999998`):                                    "limits[0].limit",
		limit(`"name":"a","algorithm":"fixed_window","limit":1,"window":"calendar_hour"`):                                                                  "limits[0].window",
		limit(`"name":"a","algorithm":"sliding_window","limit":1,"window":"calendar_day"`):                                                                 "limits[0].window",
		limit(`"name":"a","algorithm":"sliding_window","limit":1`):                                                                                         "limits[0].window",
		limit(`"name":"a","algorithm":"allocation","limit":1,"window":"1h"`):                                                                               "limits[0].window",
		limit(`"name":"a","algorithm":"allocation"`):                                                                                                       "limits[0].limit",
		limit(`"name":"a","algorithm":"fixed_window","limit":1,"window":"calendar_day","align":"first_hit"`):                                               "limits[0].align",
		limit(`"name":"a","algorithm":"sliding_window","limit":1,"window":"1h","align":"clock"`):                                                           "limits[0].align",
		limit(`"name":"a","algorithm":"leaky","limit":1,"window":"1h"`):                                                                                    "limits[0].algorithm",
		limit(`"name":"a","algorithm":"fixed_window","limit":1,"window":"1h"},{"meter":"m","name":"a","algorithm":"fixed_window","limit":1,"window":"2h"`): "limits[1].name",
		limit(`"name":"a","algorithm":"fixed_window","limit":1,"window":"1h","per":"i p"`):                                                                 "limits[0].per",
		limit(`"name":"a","algorithm":"fixed_window","limit":1,"window":"1h","mode":"Soft"`):                                                               "limits[0].mode",
		strings.Replace(limit(`"name":"a","algorithm":"fixed_window","limit":1,"window":"1h"`), `"meter":"m"`, `"meter":"z"`,
			1): "limits[0].meter",
		`{"name":"P","currency":"ZZZ","interval":"month"}`:                    "currency",
		`{"name":"P","currency":"USD","interval":"month","interval_count":0}`: "interval_count",
		`{"name":"","currency":"USD","interval":"month"}`:                     "name",
		`{"name":"P","currency":"USD","interval":"month","extra":1}`:          "extra",
	} {
		got := n.do("PUT", "/v1/plans/p", body)
		if got.status != 422 {
			t.Errorf("%s: status %d: %s", body, got.status, got.text)
			continue
		}
		if !strings.Contains(got.text, `"field":"`+field+`"`) {
			t.Errorf("%s: want a word on %s: %s", body, field, got.text)
		}
	}
	n.want(404, "GET", "/v1/plans/p", "")
}

// Keys that paths must encode stay what they are, on the way in and out.
func TestCustomerKeys(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	for _, key := range []string{
		"auth0|x", "a@b.example", "2001:db8::1", "a b", "100%", "a%41", "a+b", "...", `"quoted\`, "a?b#c", "~!$&'()*,;=",
		strings.Repeat("k", 200),
	} {
		path := "/v1/customers/" + url.PathEscape(key)
		got := n.want(201, "PUT", path, `{"name":"x","plan":"pro","timezone":"UTC"}`)
		if got.json["key"] != key {
			t.Errorf("%q is kept as %q", key, got.json["key"])
		}
		n.want(200, "GET", path+"/quota", "")
		n.want(200, "GET", path+"/usage?meter=requests", "")
		text := string(respond.AppendString(nil, key))
		if got := n.want(200, "POST", "/v1/hits", `{"customer":`+text+`,"meter":"requests"}`); got.json["customer"] != key {
			t.Errorf("%q hits as %q", key, got.json["customer"])
		}
	}
	for _, path := range []string{"%2E", "%2e%2e", "a%2Fb", "a%00b", "a%0Ab", "%C3%A9", "%FF", strings.Repeat("k", 201)} {
		n.want(422, "PUT", "/v1/customers/"+path, `{"name":"x","plan":"pro","timezone":"UTC"}`)
		n.want(422, "GET", "/v1/customers/"+path+"/quota", "")
	}
}

func TestCustomers(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	const body = `{"name":"Acme 2","plan":"pro","plan_version":1,"timezone":"Asia/Tokyo","billing_anchor":"2026-01-31T00:00:00","metadata":{"a":"b"},"change":"limits_now"}`
	got := n.want(200, "GET", "/v1/customers/acme", "")
	etag := got.header.Get("ETag")
	n.want(428, "PUT", "/v1/customers/acme", body)
	n.want(412, "PUT", "/v1/customers/acme", body, "If-Match", `"0"`)
	n.want(412, "PUT", "/v1/customers/nobody", body, "If-Match", `"a","b"`)
	n.want(412, "PUT", "/v1/customers/acme", body, "If-None-Match", `*`)
	n.want(404, "GET", "/v1/customers/nobody", "")
	n.want(201, "PUT", "/v1/customers/fresh", body, "If-None-Match", `*`)
	got = n.want(200, "PUT", "/v1/customers/acme", body, "If-Match", etag)
	if got.json["timezone"] != "Asia/Tokyo" || got.header.Get("ETag") == etag || got.json["plan_version"] != 1.0 {
		t.Errorf("replaced: %s", got.text)
	}
	for field, body := range map[string]string{
		"test_clock": `{"name":"x","plan":"pro","timezone":"UTC","test_clock":"t"}`, "change": `{"name":"x","plan":"pro","timezone":"UTC","change":"later"}`,
		"timezone": `{"name":"x","plan":"pro","timezone":"Mars/Base"}`, "plan": `{"name":"x","plan":"none","timezone":"UTC"}`,
		"billing_anchor": `{"name":"x","plan":"pro","timezone":"UTC","billing_anchor":"2026-02-30T00:00:00"}`,
		"plan_version":   `{"name":"x","plan":"pro","timezone":"UTC","plan_version":9}`,
	} {
		if got := n.want(422, "PUT", "/v1/customers/new", body); !strings.Contains(got.text, `"field":"`+field+`"`) {
			t.Errorf("%s: %s", field, got.text)
		}
	}
	n.want(422, "PUT", "/v1/customers/new", strings.Replace(body, `"a":"b"`, `"expires_at":null`, 1))
	n.want(404, "GET", "/v1/customers/new", "")
	n.want(422, "DELETE", "/v1/customers/acme?erase=yes", "")
	n.want(204, "DELETE", "/v1/customers/acme", "")
	n.want(404, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	n.want(404, "GET", "/v1/customers/acme/quota", "")
	n.want(200, "GET", "/v1/customers/acme/usage?meter=requests", "")
	n.want(409, "PUT", "/v1/customers/acme", body, "If-Match", "*")
	n.want(404, "DELETE", "/v1/customers/none", "")
}

func TestKeys(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	got := n.want(201, "POST", "/v1/keys", `{"name":"ci","scope":"read","expires_at":"2126-01-01T00:00:00+02:00"}`)
	if got.json["expires_at"] != "2125-12-31T22:00:00Z" {
		t.Errorf("key: %s", got.text)
	}
	secret, id := got.json["secret"].(string), got.json["id"].(string)
	n.want(200, "GET", "/v1/meters", "", "Authorization", "Bearer "+secret)
	if list := n.want(200, "GET", "/v1/keys", ""); strings.Contains(list.text, secret) || !strings.Contains(list.text, id) {
		t.Errorf("keys: %s", list.text)
	}
	n.want(204, "DELETE", "/v1/keys/"+id, "")
	n.want(401, "GET", "/v1/meters", "", "Authorization", "Bearer "+secret)
	for _, body := range []string{
		`{}`, `{"name":"x","scope":"root"}`, `{"name":"x","scope":"read","expires_at":"tomorrow"}`, `{"name":"x","scope":"read","expires_at":"2020-01-01T00:00:00Z"}`,
		`{"name":"x","scope":"read","expires_at":"9999-12-31T23:59:59-14:00"}`, `{"name":"x","scope":"read","expires_at":"2030-01-01T00:00:00+24:00"}`,
	} {
		n.want(422, "POST", "/v1/keys", body)
	}
	n.want(201, "POST", "/v1/keys", `{"name":"x","scope":"read","expires_at":"9999-12-31t23:59:59.999999z"}`)
	n.want(200, "GET", "/v1/keys", "")
	n.want(404, "DELETE", "/v1/keys/none", "")
}

// What a quota says is said of one instant: an untouched limit has all its quota at it.
func TestQuotaIsOfOneInstant(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	got := n.want(200, "GET", "/v1/customers/acme/quota", "")
	limit := got.json["limits"].([]any)[0].(map[string]any)
	if got.json["at"] != limit["reset_at"] {
		t.Errorf("at %v, reset at %v", got.json["at"], limit["reset_at"])
	}
}

func TestQuotaAndUsage(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":4}`)
	n.want(429, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":4}`)
	got := n.want(200, "GET", "/v1/customers/acme/quota", "")
	limit := got.json["limits"].([]any)[0].(map[string]any)
	meter := got.json["meters"].([]any)[0].(map[string]any)
	if limit["used"] != 4.0 || limit["remaining"] != 1.0 || limit["meter"] != "requests" || limit["reserved"] != 0.0 {
		t.Errorf("limits: %s", got.text)
	}
	if meter["used"] != 4.0 || meter["included"] != 3.0 || meter["overage"] != 1.0 || meter["amount_minor"] != 1.0 || meter["currency"] != "USD" ||
		meter["unit"] != "request" {
		t.Errorf("meters: %s", got.text)
	}
	for _, granularity := range []string{"hour", "day", "month"} {
		got = n.want(200, "GET", "/v1/customers/acme/usage?meter=requests&granularity="+granularity, "")
		points := got.json["points"].([]any)
		if last := points[len(points)-1].(map[string]any); last["admitted"] != 4.0 {
			t.Errorf("%s: %s", granularity, got.text)
		}
	}
	recent := url.QueryEscape(time.Now().Add(-time.Minute).Format(time.RFC3339Nano))
	if got = n.want(200, "GET", "/v1/customers/acme/usage?meter=requests&from="+recent, ""); !strings.Contains(got.text, `"admitted":4`) {
		t.Errorf("the last minute's hour: %s", got.text)
	}
	for query, status := range map[string]int{
		"": 422, "meter=": 422, "meter=none": 404, "meter=requests&granularity=week": 422, "meter=requests&granularity=": 422, "meter=requests&from=x": 422,
		"meter=requests&from=2026-01-01T0:00:00Z": 422, "meter=requests&from=2026-01-01T00:00:00,5Z": 422, "meter=requests&to=9999-12-31T23:59:59-14:00": 422,
		"meter=requests&from=2026-01-01t00:00:00z&to=2026-01-02t00:00:00z":                         200,
		"meter=requests&from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z":                         422,
		"meter=requests&to=2026-01-01T00:00:00%2B02:00&from=2020-01-01T00:00:00Z&granularity=hour": 422,
		"meter=requests&x=1": 422, "meter=requests&from=0000-01-01T00:00:00Z&granularity=month": 422,
		"meter=requests&from=2026-01-01T00:00:00Z&to=9999-12-31T23:59:59Z&granularity=month": 422,
	} {
		n.want(status, "GET", "/v1/customers/acme/usage?"+query, "")
	}
	n.want(422, "GET", "/v1/customers/acme/quota?attr=1", "")
}
